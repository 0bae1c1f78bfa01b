"""The base class of random fields of rows: fit, partial_fit, samples and likelihoods."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._arrays import is_tensor, to_numpy
from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Flag, Floats, History, Saved, Transient
from mercer._validation import check_count, check_not_negative, thread_count, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning, DivergedError, UnreliableEstimateError
from mercer.fields.partition import LogPartition, estimate
from mercer.fields.training import Schedule, approximate, check_rate
from mercer.learning.checkpoint import Checkpoint, arrays_of
from mercer.learning.checkpoint import fingerprint as fingerprint_of
from mercer.learning.learners import Chains, EnergyModel, Keys, Learner, resolve_learner
from mercer.learning.monitor import Monitor
from mercer.learning.visits import visits

__all__ = ["FieldEstimator"]

_CHAINS, _TEMPERATURES = 100, 1000  # of annealing for likelihoods
_MOST_TEMPERATURES = 32_000
_LARGEST_WEIGHT = 1000.0  # of binary units: beyond it training has diverged
_SWEEPS = 200  # of samples from the particles of training
_LEAST_EPOCHS, _LEAST_STEPS = 20, 3_000  # of a training whose length nobody gave: small data needs more passes


class FieldEstimator(Saved, Estimator):
    """A density of rows, learned by stochastic approximation."""

    saved = Fields(
        feature_means_=Floats("n_features_in_"),
        history_=History(),
        interrupted_=Flag(),
        n_iter_=Count(),
        particles_=Transient(),
        _chains=Transient(),
        _schedule=Transient(),
        _log_z=Transient(),
    )

    learner: str | Learner
    history_: dict[str, list[float]]
    _log_z: LogPartition | None

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _states(self, X: Any, reset: bool) -> Any:
        """Rows as states of the energy model; what is wrong with them raises."""

    @abstractmethod
    def _make_energy(self, like: Any) -> EnergyModel:
        """The energy model of the fitted shapes, for arrays like these."""

    @abstractmethod
    def _theta(self, like: Any) -> Any:
        """The fitted parameters as one array."""

    @abstractmethod
    def _keep(self, theta: np.ndarray) -> None:
        """Set the fitted parameters."""

    @abstractmethod
    def _first(self, data: Any, random: np.random.Generator, weights: np.ndarray | None = None) -> np.ndarray:
        """Parameters to begin with."""

    def _rows(self, data: Any, index: np.ndarray) -> Any:
        """States of some rows."""
        if is_tensor(data):
            import torch

            return data[torch.as_tensor(index, device=data.device)]
        return data[index]

    def _each_block(self, data: Any, of: Callable[[Any], Any]) -> list[Any]:
        """What a function makes of the states of 4096 rows at a time."""
        n = data.shape[0]
        return [of(self._rows(data, np.arange(first, min(n, first + 4096)))) for first in range(0, n, 4096)]

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dev: Any = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : array, or what else the model takes, of shape (n_rows, n_features)
            Binary models take two values: 0 and 1, or those of the model.
        y : ignored
        sample_weight : array of n_rows numbers of at least 0, optional
            How often an epoch visits a row: integer weights are repeats, others averages. A row of weight 0 is left
            out.
        dev : rows, optional
            Held-out rows: the weights with their best likelihood are kept, and training stops when it no longer rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self

        Raises
        ------
        DivergedError
            If parameters overflow; its ``weights`` are the last finite ones.
        """
        return self._fit(X, dev, checkpoint, sample_weight)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Make one pass over more rows, with the particles of the last one.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X)

    def _fit(
        self, X: Any, dev: Any, checkpoint: str | os.PathLike[str] | Checkpoint | None, sample_weight: Any = None
    ) -> Any:
        learner, schedule = self._check()
        data = self._states(X, reset=True)
        used, weights = used_examples(sample_weight, data.shape[0])
        if used is not None and len(used) < data.shape[0]:
            data = data[used] if not is_tensor(data) else self._rows(data, used)
        seed = _seed_of(self.random_state)
        theta = self._first(data, np.random.Generator(np.random.Philox(key=seed)), weights)
        energy = self._make_energy(data)
        schedule.n_decayed = energy.n_couplings  # type: ignore[attr-defined]
        held_out = None if dev is None else self._states(dev, reset=False)
        theta = self._beside(theta, data)
        chains = Chains(energy, Keys(seed), check_count("n_particles", self.n_particles, 2))
        visited = data.shape[0] if weights is None else len(visits(weights, data.shape[0], np.random.default_rng(0)))
        epochs = self._epochs(-(-visited // schedule.batch_size))
        monitor = self._monitor(energy, held_out, checkpoint, theta, epochs)
        resumed = None
        if monitor.checkpoint is not None:
            settings = (type(self).__name__, repr(learner), vars(schedule), self.n_particles, seed)
            arrays = [to_numpy(part) if is_tensor(part) else part for part in arrays_of(data)]
            more = [] if weights is None else [weights]
            resumed = monitor.resume(fingerprint_of(settings, [*arrays, to_numpy(theta), *more]), theta.shape[0])
        self._chains, self._schedule, self._log_z = chains, schedule, None
        try:
            with monitor, np.errstate(over="ignore", invalid="ignore"):  # `approximate` looks for what is not finite
                theta, interrupted = approximate(
                    learner,
                    chains,
                    theta,
                    data,
                    self._rows,
                    schedule,
                    epochs,
                    monitor,
                    self._figures(energy, data, weights),
                    resumed,
                    weights,
                )
        except DivergedError as error:
            self._keep(error.weights.pop("theta"))
            error.weights.update(self._named_weights())
            error.history = monitor.history  # type: ignore[attr-defined]
            raise
        except Exception as error:
            error.history = monitor.history  # type: ignore[attr-defined]
            raise
        finally:
            if monitor.checkpoint is not None:
                monitor.checkpoint.release()
        if monitor.checkpoint is not None and not interrupted:
            monitor.checkpoint.close()
        if interrupted:
            warn_caller(
                "training was interrupted: these are the weights of the last whole epoch",
                ConvergenceWarning,
            )
        self._keep(to_numpy(theta) if monitor.best_w is None else monitor.best_w)
        self._warn_of_large_weights(schedule)
        self.particles_ = to_numpy(chains.particles[0]) if chains.particles else None
        self.history_, self.interrupted_, self.n_iter_ = monitor.history, interrupted, schedule.epoch
        return self

    def _warn_of_large_weights(self, schedule: Schedule) -> None:
        """Say so where steps have thrown parameters far beyond what makes a unit certain, before they overflow."""
        if getattr(self, "visible", "binary") == "gaussian":
            return  # of any size: that of the data
        largest = float(np.abs(self._theta(np.zeros(0))).max(initial=0.0))
        if largest > _LARGEST_WEIGHT:
            warn_caller(
                f"training has probably diverged: a parameter has the size {largest:.3g}, where 20 makes a unit"
                f" certain; lower learning_rate (now {schedule.rate:g})",
                ConvergenceWarning,
            )

    def _partial_fit(self, X: Any) -> Any:
        first = not hasattr(self, "n_iter_")
        learner, schedule = self._check()
        data = self._states(X, reset=first)
        if first or getattr(self, "_chains", None) is None:
            seed = _seed_of(self.random_state)
            chains = Chains(self._make_energy(data), Keys(seed), check_count("n_particles", self.n_particles, 2))
            if first:
                self._keep(self._first(data, np.random.Generator(np.random.Philox(key=seed))))
                self.history_, self.n_iter_, self.interrupted_ = {}, 0, False
        else:
            chains, schedule = _copied(self._chains), Schedule(**vars(self._schedule))
            chains.model = self._make_energy(data)
        monitor = Monitor()
        schedule.n_decayed = chains.model.n_couplings  # type: ignore[attr-defined]
        theta, self.interrupted_ = approximate(
            learner,
            chains,
            self._theta(data),
            data,
            self._rows,
            schedule,
            schedule.epoch + 1,
            monitor,
            self._figures(chains.model, data),
        )
        self._keep(to_numpy(theta))
        self._chains, self._schedule, self._log_z = chains, schedule, None
        self.particles_ = to_numpy(chains.particles[0]) if chains.particles else None
        count = self.n_iter_
        self.history_ = {
            name: [*self.history_.get(name, [np.nan] * count), *values] for name, values in monitor.history.items()
        }
        self.n_iter_ += 1
        return self

    def _epochs(self, steps_of_an_epoch: int) -> int:
        if self.max_iter is not None:
            return check_count("max_iter", self.max_iter, 0)
        return max(_LEAST_EPOCHS, -(-_LEAST_STEPS // max(steps_of_an_epoch, 1)))

    def _check(self) -> tuple[Learner, Schedule]:
        learner = resolve_learner(self.learner, ess=self.ess, refresh=self.refresh)
        momentum = check_not_negative("momentum", self.momentum)
        if momentum >= 1:
            raise ValueError(f"momentum must be below 1, got {self.momentum!r}")
        decay = check_not_negative("weight_decay", self.weight_decay)
        check_count("likelihood_every", self.likelihood_every, 0)
        schedule = Schedule(
            *check_rate(self.learning_rate), check_count("batch_size", self.batch_size), decay, momentum
        )
        return learner, schedule

    def _monitor(self, energy: EnergyModel, held_out: Any, checkpoint: Any, theta: Any, epochs: int) -> Monitor:
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        if held_out is None:
            evaluate = None
        else:

            def evaluate(w: np.ndarray) -> float:
                return self._likelihood(energy, self._beside(w, theta), held_out)

        return Monitor(
            verbose=self.verbose,
            max_iter=epochs,
            evaluate=evaluate,
            patience=check_count("patience", self.patience),
            checkpoint=checkpoint,
        )

    def _figures(
        self, energy: EnergyModel, data: Any, weights: np.ndarray | None = None
    ) -> Callable[[Any, int], dict[str, float]]:
        small = energy.is_small()  # type: ignore[attr-defined]

        def figures(theta: Any, epoch: int) -> dict[str, float]:
            due = small if not self.likelihood_every else epoch % self.likelihood_every == 0
            if not small and not self.likelihood_every:
                return {}
            return {"log_likelihood": self._likelihood(energy, theta, data, weights) if due else np.nan}

        return figures

    def _likelihood(self, energy: EnergyModel, theta: Any, data: Any, weights: np.ndarray | None = None) -> float:
        """The mean log-likelihood; by annealing, where no exact sum is quick, even if few chains count."""
        method = "exact" if energy.is_small() else "ais"  # type: ignore[attr-defined]
        log_z = estimate(energy, theta, method, _TEMPERATURES, _CHAINS, Keys(0), self._base_data(theta))
        parts = self._each_block(data, lambda rows: np.ravel(to_numpy(energy.log_density(rows, theta))))
        return float(np.average(np.concatenate(parts).astype(np.float64), weights=weights)) - log_z.point

    def _base_data(self, like: Any) -> Any:
        return self.feature_means_

    def _beside(self, theta: np.ndarray, data: Any) -> Any:
        if is_tensor(data):
            import torch

            return torch.as_tensor(theta, device=data.device)
        return theta

    def _named_weights(self) -> dict[str, np.ndarray]:
        return {}

    # ------------------------------------------------------------------ what a fitted model tells

    def _seed(self) -> int:
        return int(self.random_state) if isinstance(self.random_state, (int, np.integer)) else 0

    def _field(self, n_jobs: int | None = None, like: Any = None) -> tuple[EnergyModel, Any, Any, Any]:
        check_is_fitted(self)
        like = np.zeros(0) if like is None else like
        energy = self._make_energy(like)
        if n_jobs is not None:
            energy.threads = thread_count(n_jobs)
        return energy, self._theta(like), self._base_data(like), getattr(self, "particles_", None)

    def _known_log_z(self) -> LogPartition:
        """log Z, exact or by annealing with as many temperatures as it takes; kept until the next fit."""
        known: LogPartition | None = getattr(self, "_log_z", None)
        if known is not None:
            return known
        energy, theta, means, _ = self._field()
        if energy.is_small(1 << 20):  # type: ignore[attr-defined]
            log_z = estimate(energy, theta, "exact", 1, 2, Keys(0))
        else:
            temperatures = _TEMPERATURES
            while True:
                log_z = estimate(energy, theta, "ais", temperatures, _CHAINS, Keys(self._seed()), means)
                try:
                    float(log_z)
                    break
                except UnreliableEstimateError:
                    if temperatures >= _MOST_TEMPERATURES:
                        raise
                temperatures *= 4
        self._log_z = log_z
        return log_z

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row.

        The partition function is summed exactly up to 2^20 states. Otherwise it is estimated once by annealing with up
        to 32,000 temperatures, and cached.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of shape (n_rows,)

        Raises
        ------
        UnreliableEstimateError
            If the effective sample size of annealing is below ten chains; :meth:`free_energy` still ranks rows.
        """
        check_is_fitted(self)
        return -self.free_energy(X) - float(self._known_log_z())

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of rows.

        Parameters
        ----------
        X : rows
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def free_energy(self, X: Any) -> Any:
        """Return −log p̃ of each row: the negative log-likelihood up to log Z.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        data = self._states(X, reset=False)
        energy, theta = self._make_energy(data), self._theta(data)
        parts = self._each_block(data, lambda rows: -energy.log_density(rows, theta)[:, 0])
        if is_tensor(data):
            import torch

            return torch.cat(parts)
        return np.concatenate(parts).astype(np.float64)

    def _sample(self, n: int, n_sweeps: int, random_state: Any, like: Any = None) -> Any:
        energy, theta, _, particles = self._field(like=like)
        n = check_count("n_samples", n)
        keys = Keys(_seed_of(self.random_state if random_state is None else random_state))
        if energy.is_small(1 << 20) and not is_tensor(like):  # type: ignore[attr-defined]
            return energy.exact_draws(n, theta, keys)  # type: ignore[attr-defined]
        if particles is None or is_tensor(like):
            from mercer.learning.learners import anneal

            states, _ = anneal(energy, energy.uniform(n, keys), None, theta, 0.9, 1, keys)
        else:
            states = particles[np.random.Generator(np.random.Philox(key=keys.next())).integers(0, len(particles), n)]
        for _ in range(check_count("n_sweeps", n_sweeps, 0)):
            states = energy.sweep(states, theta, keys)
        return states


def _copied(chains: Chains) -> Chains:
    """Chains that a step may change without changing these."""
    copy = Chains(chains.model, Keys(chains.keys.seed, chains.keys.used), chains.n_particles)
    copy.particles, copy.theta = list(chains.particles), chains.theta
    copy.log_weights, copy.age = chains.log_weights, chains.age
    return copy


def _seed_of(random_state: Any) -> int:
    """A 63-bit seed of whatever scikit-learn takes for one; an integer is itself."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return check_count("random_state", int(random_state), 0)
    if random_state is None:
        return int(np.random.default_rng().integers(1 << 62))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    return int(check_random_state(random_state).randint(1 << 31 - 1))
