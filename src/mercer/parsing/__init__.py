"""Parsing: trees over sentences, weighted grammars, and learning their weights."""

from mercer.data.trees import Tree, Word, read_trees
from mercer.parsing.grammar import Grammar, ParseError, Rule

__all__ = ["Grammar", "ParseError", "Rule", "Tree", "Word", "read_trees"]
