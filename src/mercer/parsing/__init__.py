"""Parsing: parse trees of sentences, weighted grammars, and learning their weights."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.data.trees import Tree, Word, read_trees
    from mercer.exceptions import ParseError
    from mercer.parsing.parser import Parser
    from mercer.structures.grammar import Grammar, Rule
    from mercer.structures.trees import TreeStructure

__all__ = ["Grammar", "ParseError", "Parser", "Rule", "Tree", "TreeStructure", "Word", "read_trees"]
__getattr__, __dir__ = on_demand(__name__)
