"""What the rankers share: checks of X, training of a risk, model files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from mercer._estimator import Estimator
from mercer._validation import check_choice, check_count, check_positive, check_sparse, thread_count
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.solvers import LBFGS, ConvergenceWarning, Solver
from mercer.learning.training import history_from_json, history_to_json, train

_SOLVERS = ("auto", "bmrm", "lbfgs")


class LinearModel(Estimator):
    """A linear model that a solver trains on a risk."""

    loss: str
    solver: str | Solver
    C: float
    max_iter: int | None
    tol: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    n_features_in_: int
    history_: dict[str, list[float]]
    converged_: bool
    n_iter_: int

    _smooth_if = "loss='squared-hinge'"

    @property
    def _smooth(self) -> bool:
        """Whether the loss has a gradient everywhere."""
        return self.loss == "squared-hinge"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")  # a training that failed leaves its history

    def _depends_on_units(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _check_parameters(self) -> int:
        """Checks what all rankers have; the number of threads."""
        check_choice("loss", self.loss, ("hinge", "squared-hinge"))
        check_positive("C", self.C)
        if not isinstance(self.solver, Solver):
            check_choice("solver", self.solver, _SOLVERS)
        if not self._smooth and (self.solver == "lbfgs" or isinstance(self.solver, LBFGS)):
            raise ValueError(f"solver 'lbfgs' needs a smooth loss ({self._smooth_if}); use solver='bmrm'")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter, 0)
        return thread_count(self.n_jobs)

    def _read(self, X: Any, *, fitting: bool = False) -> Any:
        """X as a finite float64 array or CSR matrix with the right number of columns."""
        if not fitting and not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        X = check_array(check_sparse("X", X), accept_sparse="csr", dtype=np.float64, estimator=self, input_name="X")
        if not fitting and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input"
            )
        return csr_matrix(X) if issparse(X) else X

    def _train(
        self,
        risk: Any,
        checkpoint: str | os.PathLike[str] | Checkpoint | None,
        said: Any,
        arrays: Callable[[], list[np.ndarray]],
    ) -> np.ndarray:
        """Runs the solver; the weights. ``said`` and the arrays are the data, for checkpoints."""
        auto = "lbfgs" if self._smooth else "bmrm"
        solver = auto if self.solver == "auto" else self.solver
        settings = solver if isinstance(solver, str) else solver.name, self.loss, float(self.C)
        result, history = train(
            risk,
            solver=solver,
            C=float(self.C),
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            warn=False,
            checkpoint=checkpoint,
            fingerprint=lambda: fingerprint((type(self).__name__, settings, said), arrays()),
        )
        self.history_, self.converged_ = history, result.converged
        self.n_iter_ = len(history.get("seconds", ()))
        if not result.converged:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
        return result.w

    # ------------------------------------------------------------------ model files

    def _state(self) -> dict[str, Any]:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        params = self.get_params(deep=False)
        if not isinstance(self.random_state, (int, type(None))):
            params["random_state"] = None
        if isinstance(self.solver, Solver):
            params["solver"] = self.solver.name
        return {
            "params": params,
            "n_features": self.n_features_in_,
            "history": history_to_json(self.history_),
            "converged": self.converged_,
            "n_iter": self.n_iter_,
        }

    @classmethod
    def _from_state(cls, meta: dict[str, Any]) -> Self:
        model = cls(**meta["params"])
        model.n_features_in_ = check_count("n_features", meta["n_features"])
        model.history_ = history_from_json(meta["history"])
        model.converged_, model.n_iter_ = bool(meta["converged"]), int(meta["n_iter"])
        return model


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a model file: finite and of this shape."""
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected a finite array of shape {shape}, found {array.shape}")
    return array
