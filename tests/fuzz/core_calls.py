"""Every entry point of the compiled core, with recorded calls mutated."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.engine import REFUSED, Case, Target, describe, run_alone
from fuzz.entries import call_entry, entry_points
from fuzz.mutate import Mutator
from fuzz.record import load_seeds
from fuzz.values import Builder, copied, plain


class CoreCalls(Target):
    """Mutated calls; arrays begin or end at a page that cannot be read."""

    name = "core"

    def __init__(self, only: str | None = None) -> None:
        self.only = only
        self.seeds: dict[str, list[Case]] = {}

    def load(self) -> None:
        if not self.seeds:
            self.seeds = load_seeds()
            self.mutator = Mutator(self.seeds)

    def case(self, seed: int, number: int) -> Case:
        return self.mutator.case(seed, number, self.only)

    def run(self, case: Case) -> str | None:
        builder = Builder(call_entry, at_end=case.get("at_end", True))
        why = self._call(case, builder)
        builder.objects.clear()
        for page in builder.pages:
            page.close()
        return why

    @staticmethod
    def _call(case: Case, builder: Builder) -> str | None:
        try:
            call_entry(case, builder)
        except BaseException as error:
            return describe(error) or REFUSED
        return None

    def subject(self, case: Case) -> str:
        return str(case["entry"])

    def smaller(self, case: Case) -> Iterator[Case]:
        for seed in self.seeds.get(case["entry"], ()):
            if len(seed["args"]) != len(case["args"]):
                continue
            for index, argument in enumerate(seed["args"]):
                if plain(case["args"][index]) != argument:
                    made = copied(case)
                    made["args"][index] = copied(argument)
                    yield made
            for key, argument in seed["kwargs"].items():
                if key in case["kwargs"] and plain(case["kwargs"][key]) != argument:
                    made = copied(case)
                    made["kwargs"][key] = copied(argument)
                    yield made
            if "self" in seed and plain(case["self"]) != seed["self"]:
                yield {**copied(case), "self": copied(seed["self"])}

    def plain(self, case: Case) -> Case:
        return plain(case)

    def unreached(self) -> list[str]:
        """Return the entry points that no seed calls, and those whose seeds do not run as they were recorded."""
        self.load()
        missing = [entry for entry in entry_points() if not self.seeds.get(entry)]
        failing = {
            call["entry"] for calls in self.seeds.values() for call in calls if not self.only and run_alone(self, call)
        }
        return missing + sorted(failing)
