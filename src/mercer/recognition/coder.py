"""Sparse coding as a transformer; the search is in `mercer.learning.sparse_codes`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Saved, Transient
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.learning.sparse_codes import Dictionary, SparseCodes, check_settings, sparse_codes
from mercer.recognition._images import as_pixel_rows

__all__ = ["SparseCoder"]

GAP = 1e-6  # relative duality gap above which a warning is due


class Coding:
    """Parameters of the search that coders and classifiers share, and the search."""

    solver: str
    n_nonzero: int | None
    tol: float | None
    alpha: float | None
    positive: bool
    n_jobs: int | None

    def _stopping(self) -> dict[str, Any]:
        """n_nonzero, tol and alpha as the solver takes them; where none is given, its default."""
        settings = {"n_nonzero": self.n_nonzero, "tol": self.tol, "alpha": self.alpha}
        if self.solver == "lasso" and self.alpha is None:
            settings["alpha"] = 0.01
        elif self.solver != "lasso" and self.tol is None and self.n_nonzero is None:
            settings["tol"] = 0.05
        return settings

    def _check_search(self) -> None:
        check_settings(self.solver, positive=self.positive, **self._stopping())

    def _search(self, X: np.ndarray, dictionary: Dictionary, barred: np.ndarray | None = None) -> SparseCodes:
        """The codes of rows, with a warning where a residual or an optimum was not reached."""
        coded = sparse_codes(
            X, dictionary, self.solver, positive=self.positive, barred=barred, n_jobs=self.n_jobs, **self._stopping()
        )
        if (target := self._stopping()["tol"]) is not None and target >= 1:
            message = f"tol={target:g} allows residuals as long as the rows: all codes are 0"
            warn_caller(message, UserWarning)
        elif self.n_nonzero is None and not coded.reached.all():
            row = int(np.argmin(coded.reached))
            warn_caller(
                f"tol={self._stopping()['tol']:g} is out of reach for {int((~coded.reached).sum())} of {len(X)} rows: "
                f"the atoms leave a residual of {coded.residuals[row]:.3g} of the norm of row {row}; "
                "their codes have the smallest residual that was found",
                ConvergenceWarning,
            )
        elif self.solver in ("l1", "lasso") and not (coded.finished & (coded.gaps <= GAP)).all():
            row = int(np.argmax(np.where(coded.finished, coded.gaps, np.inf)))
            warn_caller(
                f"the path of row {row} ended with a relative duality gap of {coded.gaps[row]:.2g}",
                ConvergenceWarning,
            )
        return coded


class SparseCoder(Coding, Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Write rows as combinations of few atoms of a dictionary.

    Parameters
    ----------
    dictionary : array of shape (n_atoms, n_features), optional
        Rows are atoms; then `transform` works without `fit`. By default the rows that are given to `fit`.
    solver : {"omp", "order-recursive", "l1", "lasso"}, default="omp"
        "omp" chooses the atom with the largest correlation with the residual, "order-recursive" the one that decreases
        the residual most, both followed by least squares over the chosen atoms; "l1" finds the code of the smallest
        ℓ1 norm with a given residual; "lasso" minimises ½‖x − Φa‖² + alpha ‖x‖ Σ_j ‖φ_j‖ ``|a_j|``.
    n_nonzero : int, optional
        Maximum number of atoms in a code, for "omp" and "order-recursive".
    tol : float, optional
        Residual to stop at, as a share of the norm of the row, for all but "lasso"; 0.05 where neither this nor
        ``n_nonzero`` is given.
    alpha : float, optional
        λ of "lasso" for rows and atoms of unit length; 0.01 where it is not given.
    positive : bool, default=False
        Codes without negative entries; not for "order-recursive".
    n_jobs : int, optional
        Threads; results do not depend on them.

    Attributes
    ----------
    dictionary_ : ndarray of shape (n_atoms, n_features)
        The atoms.

    See Also
    --------
    mercer.learning.sparse_codes.sparse_codes : The same as a function, which also returns residuals and gaps.

    References
    ----------
    .. [Pati1993] Y. C. Pati, R. Rezaiifar and P. S. Krishnaprasad. Orthogonal matching pursuit: recursive function
       approximation with applications to wavelet decomposition. Asilomar Conference on Signals, Systems and Computers,
       1993.
    .. [Chen2001] S. S. Chen, D. L. Donoho and M. A. Saunders. Atomic decomposition by basis pursuit. SIAM Review 43,
       2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.recognition import SparseCoder
    >>> atoms = np.random.default_rng(0).normal(size=(40, 20))
    >>> coder = SparseCoder(atoms, solver="l1", tol=0.01).fit(atoms)
    >>> codes = coder.transform(2 * atoms[:1] - atoms[1:2])
    >>> codes.nnz, codes.toarray()[0, :2].round(1)
    (2, array([ 2., -1.]))
    """

    saved = Fields(dictionary_=Floats(None, None), _prepared=Transient())

    def __init__(
        self,
        dictionary: Any = None,
        solver: str = "omp",
        *,
        n_nonzero: int | None = None,
        tol: float | None = None,
        alpha: float | None = None,
        positive: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.dictionary = dictionary
        self.solver = solver
        self.n_nonzero = n_nonzero
        self.tol = tol
        self.alpha = alpha
        self.positive = positive
        self.n_jobs = n_jobs

    def fit(self, X: Any = None, y: Any = None) -> SparseCoder:
        """Take the rows of X as atoms, or check the given dictionary.

        Parameters
        ----------
        X : array of shape (n_rows, n_features) or images of shape (n_rows, height, width), optional
            The atoms, unless there is a ``dictionary``.
        y : None
            Not used.

        Returns
        -------
        SparseCoder
            This coder.
        """
        self._check_search()
        if self.dictionary is None:
            if X is None:
                raise ValueError("fit needs rows X to take as atoms, or the parameter dictionary")
            self.dictionary_ = validate_data(self, as_pixel_rows(X), dtype=np.float64).copy()
        else:
            self.dictionary_ = self._given_atoms()
            if X is not None:
                rows = validate_data(self, as_pixel_rows(X), dtype=np.float64)
                if rows.shape[1] != self.dictionary_.shape[1]:
                    raise ValueError(
                        f"X has {rows.shape[1]} features, but the atoms of dictionary have {self.dictionary_.shape[1]}"
                    )
            self.n_features_in_ = self.dictionary_.shape[1]
        self._prepared = Dictionary(self.dictionary_)
        self._n_features_out = len(self.dictionary_)
        return self

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the codes of the rows of X: ``transform(X) @ dictionary_`` approximates X.

        Parameters
        ----------
        X : array of shape (n_rows, n_features) or images of shape (n_rows, height, width)
            Rows.

        Returns
        -------
        csr_matrix of shape (n_rows, n_atoms)
            Codes.
        """
        return self.code(X).codes

    def code(self, X: Any) -> SparseCodes:
        """Return the codes of the rows of X with their residuals, penalties and duality gaps.

        Parameters
        ----------
        X : array of shape (n_rows, n_features) or images of shape (n_rows, height, width)
            Rows.

        Returns
        -------
        mercer.learning.sparse_codes.SparseCodes
            Codes, residuals, gaps.
        """
        if not hasattr(self, "dictionary_") and self.dictionary is not None:
            self._check_search()
            atoms, X = self._given_atoms(), check_array(as_pixel_rows(X), dtype=np.float64)
            if X.shape[1] != atoms.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features, but the atoms of dictionary have {atoms.shape[1]}")
            return self._search(X, Dictionary(atoms, gram=len(X) * min(atoms.shape) > len(atoms)))
        check_is_fitted(self)
        X = validate_data(self, as_pixel_rows(X), dtype=np.float64, reset=False)
        prepared = self._prepared or Dictionary(self.dictionary_)
        return self._search(X, prepared)

    def _given_atoms(self) -> np.ndarray:
        return check_array(as_pixel_rows(self.dictionary), dtype=np.float64, input_name="dictionary").copy()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dictionary_") or self.dictionary is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.dictionary is None
        return tags

    def _check_complete(self) -> None:
        if not hasattr(self, "dictionary_"):
            raise NotFittedError("this SparseCoder is not fitted yet: call fit (alone, if it has a dictionary)")

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        return {**params, "dictionary": None if self.dictionary is None else self.dictionary_}

    def _check_state(self) -> None:
        self._check_search()
        if min(self.dictionary_.shape) < 1 or self.dictionary_.shape[1] != self.n_features_in_:
            raise ValueError(f"expected atoms of {self.n_features_in_} features, found {self.dictionary_.shape}")
        self._n_features_out = len(self.dictionary_)
