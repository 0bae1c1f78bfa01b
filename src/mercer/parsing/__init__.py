"""Parsing: parse trees of sentences, weighted grammars, and learning their weights."""

from mercer.data.trees import Tree, Word, read_trees
from mercer.exceptions import ParseError
from mercer.parsing.parser import Parser
from mercer.structures.grammar import Grammar, Rule
from mercer.structures.trees import TreeStructure

__all__ = ["Grammar", "ParseError", "Parser", "Rule", "Tree", "TreeStructure", "Word", "read_trees"]
