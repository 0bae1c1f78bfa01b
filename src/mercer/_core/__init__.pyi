# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Compiled loops of mercer: plain arrays in, plain arrays out."""

from mercer._core import (
    alignment as alignment,
    bags as bags,
    chain as chain,
    examples as examples,
    fields as fields,
    graphs as graphs,
    hashing as hashing,
    inference as inference,
    joint as joint,
    kernels as kernels,
    learner as learner,
    linear as linear,
    machines as machines,
    maps as maps,
    multiclass as multiclass,
    parsing as parsing,
    planes as planes,
    ranking as ranking,
    registration as registration,
    segments as segments,
    sparse_codes as sparse_codes,
    text as text,
    vectors as vectors,
    vocabulary as vocabulary,
)

def instruction_set() -> str:
    """The instruction set in use."""

def instruction_sets() -> list[str]:
    """The instruction sets that this machine can run."""

def use_instruction_set(name: str) -> None:
    """Chooses an instruction set (the best one is in use by default)."""

def watch_choices(watch: bool) -> None:
    """Begins to note which loops were chosen for which sets, or ends."""

def choices() -> dict:
    """
    The concerns whose loops were chosen while that was watched, and the sets of these loops.
    """
