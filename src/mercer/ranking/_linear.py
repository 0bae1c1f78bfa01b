"""Code shared by the rankers: checks of X, the losses and solvers of linear scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from mercer._explain import ScoreModel, ScoreRows
from mercer._validation import check_choice, check_count, check_sparse
from mercer.learning.checkpoint import arrays_of
from mercer.learning.estimator import RiskEstimator
from mercer.learning.penalties import Penalty
from mercer.learning.solvers import BMRM, LBFGS, OWLQN, Solver

_SOLVERS = ("auto", "bmrm", "lbfgs", "owlqn")
_NO_DISTRIBUTION = "a ranker learns scores, and no distribution over rankings"


class LinearRanker(ScoreModel, RiskEstimator):
    """Linear scores trained on a ranking risk."""

    n_features_in_: int

    lacks: ClassVar[dict[str, str]] = {
        "partial_fit": "there is no online loop over rankings",
        **dict.fromkeys(("k_best", "predict_marginals", "sample", "log_likelihood", "entropy"), _NO_DISTRIBUTION),
    }

    _observations = "rows"
    _has_intercept: bool
    _labels_have_scores = True
    """Whether there is a row of weights for each label, and not one score."""
    _smooth_if = "loss='squared-hinge'"

    @property
    def _smooth(self) -> bool:
        """Whether the loss has a gradient everywhere."""
        return bool(self.loss == "squared-hinge")

    def _depends_on_units(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _check(self) -> None:
        check_choice("loss", self.loss, ("hinge", "squared-hinge"))
        if not isinstance(self.solver, Solver):
            check_choice("solver", self.solver, _SOLVERS)
        for name, method in (("lbfgs", LBFGS), ("owlqn", OWLQN)):
            if not self._smooth and (self.solver == name or isinstance(self.solver, method)):
                raise ValueError(f"solver {name!r} needs a smooth loss ({self._smooth_if}); use solver='bmrm'")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter, 0)

    def _loss(self) -> Any:
        return self.loss  # the risk has it built in

    def _auto(self, loss: Any, penalty: Penalty, risk: Any) -> Solver:
        if not self._smooth:
            return BMRM()
        return OWLQN() if penalty.l1 else LBFGS()

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        return {**params, "solver": params["solver"] if params["solver"] in _SOLVERS else "auto"}

    def _rows(self, X: Any, *, fitting: bool = False) -> Any:
        """X as a finite float64 array or CSR matrix with the right number of columns."""
        if not fitting and not hasattr(self, "n_features_in_"):
            self._check_is_fitted()
        if hasattr(X, "columns"):  # names of columns are remembered, and must be the same afterwards
            validate_data(self, X, reset=fitting, skip_check_array=True)
        elif fitting and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        X = check_array(check_sparse("X", X), accept_sparse="csr", dtype=np.float64, estimator=self, input_name="X")
        if not fitting and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input"
            )
        return csr_matrix(X) if issparse(X) else X

    def _score_rows(self) -> ScoreRows:
        self._check_is_fitted()
        rows = super()._score_rows()
        return rows if self._labels_have_scores else replace(rows, labels=None)

    def _arrays(self, X: Any, y: Any) -> Iterable[np.ndarray | None]:
        return [*arrays_of(X), *y]
