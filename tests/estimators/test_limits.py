"""Which values of its parameters each estimator takes, and which it refuses: the record is limits.txt beside this file.

Numbers below, at and above the usual limits, and what is no number. To record a change that is meant:

    PYTHONPATH=tests python tests/estimators/test_limits.py
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from estimators.cases import CASES, Case
from estimators.outputs import fit

RECORD = Path(__file__).with_name("limits.txt")
ANYTHING_GOES = {"verbose", "random_state", "n_jobs", "seed"}  # they have tests of their own
COUNTS = [-1, 0, 1, 2, 0.5, True, "no such thing"]
NUMBERS = [-1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 1 + 1e-7, 2.0, float("nan"), float("inf"), True, "no such thing"]
NAMES = ["no such thing", "", 3]


def values_for(default: Any) -> list[Any]:
    """What to try in the place of a default."""
    if isinstance(default, bool):
        return []
    kinds = {int: COUNTS, float: NUMBERS, str: NAMES}
    return next((values for kind, values in kinds.items() if isinstance(default, kind)), [])


def limits(case: Case) -> list[str]:
    """One line for each parameter: the values that a fit takes, and those that it refuses."""
    lines = []
    for name, parameter in inspect.signature(case.cls).parameters.items():
        values = [] if name in ANYTHING_GOES else values_for(parameter.default)
        taken, refused = [], []
        for value in values:
            try:
                fit(case, model=case.make().set_params(**{name: value}))
            except (ValueError, TypeError) as error:
                if "not supported" in str(error):  # it was compared before it was checked
                    raise
                refused.append(repr(value))
            else:
                taken.append(repr(value))
        if values:
            told = (
                f"takes {', '.join(taken) or 'none'}; refuses {', '.join(refused)}" if refused else "not looked at here"
            )
            lines.append(f"{name}: {told}")
    return lines


def recorded() -> dict[str, list[str]]:
    """The lines of each case, by its number and class."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in RECORD.read_text().splitlines():
        if line.startswith("  "):
            sections[title].append(line.strip())
        else:
            title = line
            sections[title] = []
    return sections


def titles() -> dict[str, Case]:
    """A name for each case: its class, and which of several of that class."""
    named: dict[str, Case] = {}
    for case in CASES:
        name, k = case.cls.__name__, 1
        while (title := name if k == 1 else f"{name} {k}") in named:
            k += 1
        named[title] = case
    return named


TITLES = titles()


@pytest.mark.parametrize("title", TITLES)
def test_limits_are_those_on_record(title: str) -> None:
    assert limits(TITLES[title]) == recorded().get(title), "if this is meant, see the top of this file"


def test_the_record_has_no_estimator_that_is_gone() -> None:
    assert list(recorded()) == list(TITLES)


if __name__ == "__main__":
    sections = [[title, *(f"  {line}" for line in limits(case))] for title, case in TITLES.items()]
    RECORD.write_text("\n".join(line for section in sections for line in section) + "\n")
