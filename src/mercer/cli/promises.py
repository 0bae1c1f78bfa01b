"""Bounds on the error of a model from a file of examples: a block for its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.report.portrait import Block


def promised(what: str, wrong: Sequence[bool], model: Any = None, X: Any = None, y: Any = None) -> Block:
    """Return bounds on the error of the model: from these examples, and from theory if its weights allow it.

    Without ``model``, only the first.
    """
    from mercer.report.portrait import Facts
    from mercer.theory import pac_bayes

    share = float(sum(wrong)) / len(wrong)
    rows = [
        (f"wrong {what}", f"{share:.4f} of {len(wrong):,}"),
        ("others like these", f"{pac_bayes.held_out_bound(share, len(wrong)):.4f} at most, if the model has seen none"),
    ]
    if model is not None:
        try:
            bounds = pac_bayes.bound(model, X, y, B="data", n_draws=50)
        except (TypeError, ValueError, NotImplementedError) as error:
            rows.append(("by margins, by PAC-Bayes", f"not known: {error}"))
        else:
            for name, value in (("by margins", bounds.margin), ("by PAC-Bayes", bounds.average)):
                rows.append((name, f"{value:.4f}{' (says nothing)' if value >= 1 else ''}"))
            rows.append(("‖w‖, B, ln |Y|", f"{bounds.w_norm:.4g}, {bounds.B:.4g}, {bounds.log_cardinality:.4g}"))
    return Facts([*rows, ("each holds with probability", "0.95")], "Bounds on the error")
