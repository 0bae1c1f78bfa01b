"""Maximum entropy discrimination: a distribution over weights; predictions use the averaged score.

    min_{Q, ξ}  KL(Q ‖ P) + C Σ_i ξ_i   subject to   E_Q[⟨w, ΔΦ_i(y)⟩] ≥ Δ(y_i, y) − ξ_i   for all i, y

Q(w) ∝ P(w) exp⟨η, w⟩, η = Σ α ΔΦ. With a Gaussian prior N(0, σ²) this is N(w*, σ²), w* the max-margin Markov network
[Taskar2003]_, [Jaakkola1999]_; with a Laplace prior small weights shrink more than large ones [Zhu2009]_.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Objects, Saved
from mercer._validation import check_choice, check_count, check_positive
from mercer.learning.estimator import StructuredEstimator
from mercer.learning.solvers.maximum_entropy import LaplaceDiscrimination
from mercer.structures.base import check_random_seed

PRIORS = ("gaussian", "laplace")


class MaximumEntropyDiscrimination(Saved, Estimator):
    """Learn a posterior over the weights of a structured model, with margins that hold in expectation.

    The posterior is the distribution Q nearest to the prior (in the sense of KL(Q ‖ P)) under which the expected score
    of the true output exceeds all others by the cost, up to slack. Predictions use the averaged score, which is the
    score of the posterior mean.

    Parameters
    ----------
    model : StructuredEstimator
        The model to learn: a ``Tagger``, ``Segmenter``, ``StructuredPredictor``, ``GraphLabeler``, … with a margin loss
        such as "hinge". It is copied, not changed; its ``penalty`` must be "l2", which represents the prior.
    prior : {"gaussian", "laplace"}, default="gaussian"
        Independent prior of all weights. "gaussian" gives the max-margin Markov network as the posterior mean;
        "laplace" shrinks small weights more, large ones less.
    scale : float, default=1.0
        Standard deviation of the prior.
    C : float, default=1.0
        Weight of the slack.
    random_state : int, Generator or None
        Seed of the solver, and of `sample` by default.

    Attributes
    ----------
    model_ : the fitted model; its weights are the posterior mean
    posterior_mean_, posterior_variance_ : arrays of shape (n_weights,)
        In the layout of the model's ``coef_``, flattened.
    natural_ : array of shape (n_weights,)
        η = Σ α ΔΦ.
    divergence_ : float
        KL(Q ‖ P), in nats.

    Examples
    --------
    >>> from mercer import Tagger
    >>> from mercer.structured import MaximumEntropyDiscrimination
    >>> X = [[["warm"], ["wet"], ["wet"]], [["wet"], ["warm"], ["warm"]]]
    >>> y = [["sun", "rain", "rain"], ["rain", "sun", "sun"]]
    >>> med = MaximumEntropyDiscrimination(Tagger("hinge"), prior="laplace", random_state=0).fit(X, y)
    >>> med.predict([[["wet"], ["warm"]]])
    [['rain', 'sun']]
    >>> med.sample(1000).shape == (1000, len(med.posterior_mean_))
    True

    References
    ----------
    .. [Jaakkola1999] T. Jaakkola, M. Meila and T. Jebara. Maximum entropy discrimination. NIPS, 1999.
    .. [Taskar2003] B. Taskar, C. Guestrin and D. Koller. Max-margin Markov networks. NIPS, 2003.
    .. [Zhu2009] J. Zhu and E. P. Xing. Maximum entropy discrimination Markov networks. Journal of Machine Learning
       Research 10, 2009.
    """

    saved = Fields(model_=Objects(), natural_=Floats(None))

    model_: Any
    natural_: np.ndarray

    def __init__(
        self,
        model: Any,
        prior: str = "gaussian",
        *,
        scale: float = 1.0,
        C: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.prior = prior
        self.scale = scale
        self.C = C
        self.random_state = random_state

    def _check(self) -> None:
        if not isinstance(self.model, StructuredEstimator):
            raise TypeError(f"model must be a structured estimator such as Tagger, got {type(self.model).__name__}")
        check_choice("prior", self.prior, PRIORS)
        check_positive("scale", self.scale)
        check_positive("C", self.C)
        if self.model.penalty != "l2":
            raise ValueError(f"model must have penalty='l2', which stands for the prior, got {self.model.penalty!r}")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> MaximumEntropyDiscrimination:
        """Fit the posterior.

        Parameters
        ----------
        X, y : training data of the model
        sample_weight : array of a number for each example, optional
        **fit_params
            Passed to the model's ``fit``: ``dev``, ``checkpoint``, ….

        Returns
        -------
        self : MaximumEntropyDiscrimination
        """
        self._check()
        model = clone(self.model)
        if model._loss().smooth:
            raise ValueError(
                f"model must have a margin loss such as 'hinge', got {model._loss().name!r}: constraints are margins"
            )
        if self.prior == "gaussian":  # ‖w‖² / 2σ² + C · risk: the same as ½‖w‖² + C σ² · risk
            model.set_params(C=float(self.C) * float(self.scale) ** 2)
        else:
            model.set_params(C=float(self.C), solver=LaplaceDiscrimination(float(self.scale)))
        model.set_params(random_state=self.random_state)
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        self.model_ = model.fit(X, y, **fit_params)
        mean = model._flat(model)
        self.natural_ = mean / float(self.scale) ** 2 if self.prior == "gaussian" else self._laplace().natural(mean)
        return self

    def _laplace(self) -> LaplaceDiscrimination:
        return LaplaceDiscrimination(float(self.scale))

    # ------------------------------------------------------------------ the posterior

    @property
    def posterior_mean_(self) -> np.ndarray:
        """E_Q w."""
        check_is_fitted(self, "model_")
        return np.array(self.model_._flat(self.model_), dtype=float)

    @property
    def posterior_variance_(self) -> np.ndarray:
        """The variance of each weight under Q."""
        check_is_fitted(self, "model_")
        if self.prior == "gaussian":
            return np.full(len(self.natural_), float(self.scale) ** 2)
        square, eta = self._laplace().rate ** 2, self.natural_**2
        return 2.0 * (square + eta) / (square - eta) ** 2

    @property
    def divergence_(self) -> float:
        """KL(Q ‖ P), in nats."""
        mean = self.posterior_mean_
        if self.prior == "gaussian":
            return 0.5 * float(mean @ mean) / float(self.scale) ** 2
        return self._laplace().divergence(mean)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw weights from the posterior.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, Generator or None
            Default: the estimator's.

        Returns
        -------
        w : array of shape (n_samples, n_weights)
        """
        check_count("n_samples", n_samples)
        check_is_fitted(self, "model_")
        given = self.random_state if random_state is None else random_state
        random = np.random.default_rng(check_random_seed(given))
        shape = n_samples, len(self.natural_)
        if self.prior == "gaussian":
            return self.posterior_mean_ + float(self.scale) * random.standard_normal(shape)
        rate, eta = self._laplace().rate, self.natural_
        right = random.random(shape) < (rate + eta) / (2.0 * rate)  # the mass on the positive side
        return random.exponential(size=shape) * np.where(right, 1.0 / (rate - eta), -1.0 / (rate + eta))

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> Any:
        """Return the outputs with the highest averaged score.

        Parameters
        ----------
        X : inputs
            Inputs of the inner model.

        Returns
        -------
        outputs, as the model inside gives them
        """
        check_is_fitted(self, "model_")
        return self.model_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the model with the posterior mean as weights."""
        check_is_fitted(self, "model_")
        return self.model_.score(X, y)

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        self._check()
        if not isinstance(self.model_, StructuredEstimator) or not hasattr(self.model_, "coef_"):
            raise ValueError("model_ must be a fitted structured estimator")
        if len(self.model_._flat(self.model_)) != len(self.natural_):
            raise ValueError("natural_ must have a number for each weight of model_")
        if self.prior == "laplace" and not (np.abs(self.natural_) < self._laplace().rate).all():
            raise ValueError("natural_ must lie between −s and s, s the rate of the prior")
