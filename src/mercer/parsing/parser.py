"""Parsing as an estimator: a grammar from trees, weights by counting or by margin.

    "pcfg":  w[A → β] = log (count(A → β) / count(A)), the largest likelihood
    "ssvm":  minimise ½‖w‖² + C Σ_i loss(x_i, y_i; w),  score(x, y) = ⟨w, Φ(x, y)⟩,  Φ = counts of rules

Prediction is the tree of highest score, by a compiled chart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer._estimator import Estimator
from mercer._state.values import pack_strings, unpack_strings
from mercer._validation import check_choice, check_count, check_flag, check_positive, decreases, thread_count
from mercer.data.trees import Tree, Word
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.losses import Log, Loss, resolve_loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.learning.training import history_from_json, history_to_json, train
from mercer.metrics import bracket_f1
from mercer.parsing.grammar import Grammar, ParseError, Rule, check_sentence, check_trees, stack_offsets
from mercer.parsing.structure import COSTS, FEATURES, TreeBatches, TreeStructure
from mercer.structures.joint import Examples

UNKNOWN = "<unknown>"


class Parser(Estimator):
    """Learns the weights of a grammar from trees, and parses.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"hybrid"``, ``"relative-margin"`` or
        ``"log"`` (a conditional random field over trees).
    solver : str or Solver, default="bcfw"
        ``"bcfw"``, ``"cutting-plane"``, ``"bmrm"`` or ``"subgradient"``; ``"lbfgs"`` for smooth losses.
    C : float, default=1.0
        Weight of the summed loss: ``½‖w‖² + C · Σ loss``.
    method : {"ssvm", "pcfg"}, default="ssvm"
        ``"pcfg"`` sets the weights to logarithms of relative frequencies instead; loss, solver, C, cost and features
        then do not matter.
    cost : {"bracket", "zero-one", "f1"}, default="bracket"
        Δ of the margin: brackets in one tree only, whether the trees differ, or 1 − F1 of the brackets. All three
        searches are exact; ``"f1"`` takes longer, above all for long sentences.
    grammar : Grammar, optional
        The rules; by default those of the training trees. Its weights are not used, except where trees are not given.
    features : {"rules", "rules+boundaries"}, default="rules"
        Counts of rules; or also the label of each bracket with the words at its edges (see :class:`TreeStructure`).
    preterminals : bool, default=True
        Whether a node right above a single word is a bracket, in costs and in :meth:`score`. With words as leaves,
        False leaves out the parts of speech, as PARSEVAL does.
    rare : int, default=0
        Words seen at most so often in training count as one unknown word, and so do new words later. With 0 a new word
        cannot be parsed.
    smoothing : float, default=0.0
        With ``"pcfg"``: pseudo-count of each rule.
    on_failure : {"raise", "none"}, default="raise"
        What :meth:`predict` does with a sentence that has no tree: :class:`ParseError`, or None in its place.
    max_iter, tol : int and float or None
        None: the solver's own.
    n_jobs : int or None
        Threads for prediction; -1 for all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of solvers that draw at random.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    grammar_ : Grammar
        The rules with the learnt weights.
    structure_ : TreeStructure
        Φ, and the layout of ``coef_``.
    coef_ : array
        The weights: those of the rules first.
    history_ : dict of lists
        The course of training (empty for ``"pcfg"``).
    converged_ : bool
    n_iter_ : int

    Examples
    --------
    >>> from mercer.parsing import Parser, read_trees
    >>> trees = read_trees('''
    ...     (S (NP (Det the) (N dog)) (VP (V saw) (NP (Det a) (N cat))))
    ...     (S (NP (N cats)) (VP (VP (V saw) (NP (Det the) (N dog))) (PP (P with) (NP (N eyes)))))
    ...     (S (NP (Det a) (N cat)) (VP (V saw) (NP (NP (Det the) (N park)) (PP (P with) (NP (N dogs))))))
    ... ''')
    >>> parser = Parser(C=10.0, random_state=0).fit(None, trees)
    >>> print(parser.predict(["the cat saw a dog".split()])[0])
    (S (NP (Det the) (N cat)) (VP (V saw) (NP (Det a) (N dog))))
    >>> parser.score(None, trees) > 0.8
    True
    """

    coef_: np.ndarray
    grammar_: Grammar
    structure_: TreeStructure
    history_: dict[str, list[float]]
    converged_: bool
    n_iter_: int

    def __init__(
        self,
        loss: str | Loss = "hinge",
        solver: str | Solver = "bcfw",
        C: float = 1.0,
        *,
        method: str = "ssvm",
        cost: str = "bracket",
        grammar: Grammar | None = None,
        features: str = "rules",
        preterminals: bool = True,
        rare: int = 0,
        smoothing: float = 0.0,
        on_failure: str = "raise",
        max_iter: int | None = None,
        tol: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.C = C
        self.method = method
        self.cost = cost
        self.grammar = grammar
        self.features = features
        self.preterminals = preterminals
        self.rare = rare
        self.smoothing = smoothing
        self.on_failure = on_failure
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self,
        sentences: Sequence[Sequence[str]] | None,
        trees: Sequence[Tree],
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Parser:
        """Learns from sentences and their trees.

        Parameters
        ----------
        sentences : list of lists of words, or None
            None: the leaves of the trees. Otherwise they must agree with them.
        trees : list of Tree
        checkpoint : path or Checkpoint, optional
            Training is saved there every few seconds; a fit that was killed goes on from there when it is called again.
            Not for ``method="pcfg"``, which counts.

        Returns
        -------
        self
        """
        self._check_parameters()
        if checkpoint is not None and self.method == "pcfg":
            raise ValueError("method='pcfg' counts and needs no checkpoint; leave checkpoint out")
        trees = check_trees(trees)
        sentences = _leaves(sentences, trees)
        grammar, trees = self._grammar_of(trees)
        X, Y = _encode(grammar, sentences, trees)
        if self.method == "pcfg":
            self._count(grammar, Y)
            return self
        structure = TreeStructure(grammar, self.cost, features=self.features, preterminals=self.preterminals)
        batches = TreeBatches(structure, thread_count(self.n_jobs))
        C, loss = check_positive("C", self.C), resolve_loss(self.loss)
        solver = self.solver if isinstance(self.solver, str) else self.solver.name
        said = solver, loss.to_json(), C, self.cost, self.features, self.preterminals, grammar.rules
        result, history = train(
            Risk(batches, loss, Examples(X), Examples(Y)),
            solver=self.solver,
            C=C,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint=lambda: fingerprint((said, [str(tree) for tree in trees]), []),
        )
        self._keep(structure, result.w)
        self.history_, self.converged_ = history, result.converged
        self.n_iter_ = len(history.get("seconds", ()))
        return self

    def _check_parameters(self) -> None:
        check_choice("method", self.method, ("ssvm", "pcfg"))
        check_choice("cost", self.cost, COSTS)
        check_choice("features", self.features, FEATURES)
        check_choice("on_failure", self.on_failure, ("raise", "none"))
        check_count("rare", self.rare, 0)
        thread_count(self.n_jobs)
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            raise TypeError(f"grammar must be a Grammar or None, got {type(self.grammar).__name__}")
        if self.grammar is not None and self.rare:
            raise ValueError(
                "rare makes an unknown word in a grammar read off trees; a given grammar has its own, unknown="
            )

    def _grammar_of(self, trees: list[Tree]) -> tuple[Grammar, list[Tree]]:
        """The grammar, and the trees as it sees them (rare words replaced)."""
        if self.grammar is not None:
            return self.grammar, trees
        unknown = None
        if self.rare:
            seen = Counter(word for tree in trees for word in tree.leaves())
            few = {word for word, count in seen.items() if count <= self.rare}
            if not few:
                raise ValueError(
                    f"rare={self.rare}, but every word occurs more often: there is no unknown word to learn"
                )
            trees, unknown = [_replaced(tree, few) for tree in trees], UNKNOWN
        return Grammar.from_trees(trees, self.smoothing, cycles="once", unknown=unknown), trees

    def _count(self, grammar: Grammar, Y: list[np.ndarray]) -> None:
        if self.grammar is not None:  # the rules are given, the counts are those of the trees
            counts = np.bincount(np.concatenate(Y), minlength=len(grammar.rules)) + float(self.smoothing)
            parents = np.array([grammar.labels.index(rule.parent) for rule in grammar.rules])
            totals = np.bincount(parents, weights=counts)[parents]
            with np.errstate(divide="ignore", invalid="ignore"):
                grammar = grammar.with_weights(np.where(counts > 0, np.log(counts / totals), -np.inf))
        self._keep(TreeStructure(grammar, self.cost, preterminals=self.preterminals), grammar.weights)
        self.history_, self.converged_, self.n_iter_ = {}, True, 0

    def _keep(self, structure: TreeStructure, coef: np.ndarray) -> None:
        self.structure_, self.coef_ = structure, coef
        self.grammar_ = structure.grammar.with_weights(coef[: structure.n_rules])

    # ------------------------------------------------------------------ prediction

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[Tree | None]:
        """The best tree of each sentence; see ``on_failure`` for those that have none."""
        return [found[0][0] if found else None for found in self._search(sentences, 1)]

    def k_best(self, sentences: Sequence[Sequence[str]], k: int) -> list[list[tuple[Tree, float]]]:
        """For each sentence the k best trees with their scores, best first; fewer where there are fewer.

        Scores are log p(tree) for ``method="pcfg"``, log p(tree | sentence) for the log loss, and ⟨w, Φ⟩ otherwise.
        """
        found = self._search(sentences, check_count("k", k))
        if self.method == "pcfg" or not self._is_log():
            return found
        z = self._log_partitions(sentences)
        return [[(tree, score - total) for tree, score in trees] for trees, total in zip(found, z, strict=True)]

    def log_likelihood(
        self, sentences: Sequence[Sequence[str]] | None, trees: Sequence[Tree] | None = None
    ) -> np.ndarray:
        """Log-probabilities, one a sentence; −inf where the grammar derives nothing.

        Parameters
        ----------
        sentences : list of lists of words, or None
            None: the leaves of the trees.
        trees : list of Tree, optional
            With ``method="pcfg"``: log p(tree) if given, else log p(sentence), the sum over all its trees. With the log
            loss trees are needed: log p(tree | sentence).
        """
        self._check_fitted()
        if self.method != "pcfg" and not self._is_log():
            raise ValueError(f"the loss {self.loss!r} knows no probabilities: use loss='log' or method='pcfg'")
        if trees is None:
            if self.method != "pcfg":
                raise ValueError("with the log loss give trees: it is p(tree | sentence) that is learnt")
            if sentences is None:
                raise ValueError("give sentences, trees or both")
            return self._log_partitions(sentences)
        trees = check_trees(trees)
        sentences = _leaves(sentences, trees)
        scores = np.array([self._tree_score(tree) for tree in trees])
        if self.method == "pcfg":
            return scores
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(scores), -np.inf, scores - self._log_partitions(sentences))

    def score(self, sentences: Sequence[Sequence[str]] | None, trees: Sequence[Tree]) -> float:
        """F1 of the labelled brackets over all sentences; a sentence without a tree has none."""
        trees = check_trees(trees)
        found = self._search(_leaves(sentences, trees), 1, fail=False)
        predicted = [one[0][0] if one else None for one in found]
        return bracket_f1(trees, predicted, preterminals=self.preterminals).f1

    def _is_log(self) -> bool:
        return self.loss == "log" or isinstance(self.loss, Log)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError("this Parser is not fitted yet: call fit first")

    def _tree_score(self, tree: Tree) -> float:
        try:
            derivation = self.grammar_.derivation(tree)
        except ValueError:
            return -np.inf
        if self.structure_.n_weights == self.structure_.n_rules:  # −inf is a weight here, but 0 · −inf no number
            return float(self.coef_[derivation].sum())
        x = self.grammar_.encode(tree.leaves())
        return float((self.structure_.features(x, derivation) @ self.coef_).sum())

    def _known(self, sentences: Sequence[Sequence[str]], fail: bool) -> tuple[list[int], list[np.ndarray]]:
        """Numbers and words of the sentences whose words are known; those with others raise if they are to."""
        self._check_fitted()
        if isinstance(sentences, str):
            raise TypeError("sentences must be a list of lists of words, got a string")
        numbers, encoded = [], []
        for number, sentence in enumerate(sentences):
            try:
                encoded.append(self.grammar_.encode(sentence, number))
                numbers.append(number)
            except ParseError:
                if fail:
                    raise
        return numbers, encoded

    def _search(
        self, sentences: Sequence[Sequence[str]], k: int, fail: bool | None = None
    ) -> list[list[tuple[Tree, float]]]:
        fail = self.on_failure == "raise" if fail is None else fail
        numbers, encoded = self._known(sentences, fail)
        result: list[list[tuple[Tree, float]]] = [[] for _ in range(len(sentences))]
        for chunk in _chunks(encoded):
            some = encoded[chunk]
            batch = (self.grammar_.weights, np.concatenate(some), stack_offsets(some))
            options = (self.structure_._stacked_sigma(self.coef_, some), self.preterminals, thread_count(self.n_jobs))
            chart = self.grammar_.chart
            rules, offsets, scores = chart.best(*batch, *options) if k == 1 else chart.k_best(*batch, k, *options)
            for at, score in enumerate(scores.tolist()):
                if score > -np.inf:
                    number = numbers[chunk.start + at // k]
                    tree = self.grammar_.tree(rules[offsets[at] : offsets[at + 1]], sentences[number])
                    result[number].append((tree, score))
        for number, found in enumerate(result):
            if fail and not found:
                raise ParseError(number, None)
        return result

    def _log_partitions(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        numbers, encoded = self._known(sentences, fail=False)
        z = np.full(len(sentences), -np.inf)
        for chunk in _chunks(encoded):
            some = encoded[chunk]
            z[numbers[chunk]] = self.grammar_.chart.log_partition(
                self.grammar_.weights,
                np.concatenate(some),
                stack_offsets(some),
                self.structure_._stacked_sigma(self.coef_, some),
                self.preterminals,
                None,
                None,
                thread_count(self.n_jobs),
            )
        return z

    # ------------------------------------------------------------------ model files

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything a model file needs. See :func:`mercer.save`."""
        self._check_fitted()
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "grammar"}
        for name in ("loss", "solver"):
            params[name] = getattr(params[name], "name", params[name])
        if not isinstance(self.random_state, (int, type(None))):
            params["random_state"] = None
        grammar = self.grammar_
        symbols = grammar.labels + grammar.words
        label = {name: n for n, name in enumerate(grammar.labels)}
        word = {name: len(label) + n for n, name in enumerate(grammar.words)}
        children = [
            [word[c.text] if isinstance(c, Word) else label[c] for c in rule.children] for rule in grammar.rules
        ]
        arrays = {
            # Forbidden rules are kept apart: a file holds finite numbers.
            "coef": np.where(np.isneginf(self.coef_), 0.0, self.coef_),
            "forbidden": np.flatnonzero(np.isneginf(self.coef_)).astype(np.int64),
            "parents": np.array([label[rule.parent] for rule in grammar.rules], dtype=np.int64),
            "children": np.array([c for row in children for c in row], dtype=np.int64),
            "offsets": stack_offsets([np.array(row) for row in children]),
        }
        arrays |= {f"symbols.{key}": value for key, value in pack_strings(symbols).items()}
        meta = {
            "params": params,
            "n_labels": len(label),
            "start": grammar.start,
            "cycles": grammar.cycles,
            "unknown": grammar.unknown,
            "history": history_to_json(self.history_),
            "converged": self.converged_,
            "n_iter": self.n_iter_,
        }
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Parser:
        """The inverse of :meth:`to_state`."""
        model = cls(**meta["params"])
        symbols = unpack_strings({key: arrays[f"symbols.{key}"] for key in ("bytes", "offsets")})
        n_labels = int(meta["n_labels"])
        parents, children, offsets = arrays["parents"], arrays["children"], arrays["offsets"]
        if (
            len(offsets) != len(parents) + 1
            or offsets[0] != 0
            or offsets[-1] != len(children)
            or decreases(offsets, strictly=False)
        ):
            raise ValueError("the rules of the grammar do not fit together")
        for numbers, bound in ((parents, n_labels), (children, len(symbols))):
            if len(numbers) and (numbers.min() < 0 or numbers.max() >= bound):
                raise ValueError("a symbol of the grammar is out of range")
        named: list[str | Word] = [*symbols[:n_labels], *(Word(word) for word in symbols[n_labels:])]
        rules = [
            Rule(symbols[parent], tuple(named[c] for c in children[offsets[r] : offsets[r + 1]].tolist()))
            for r, parent in enumerate(parents.tolist())
        ]
        grammar = Grammar(rules, None, meta["start"], cycles=meta["cycles"], unknown=meta["unknown"])
        check_flag("preterminals", model.preterminals)
        features = model.features if model.method == "ssvm" else "rules"
        structure = TreeStructure(grammar, model.cost, features=features, preterminals=model.preterminals)
        coef, forbidden = arrays["coef"].copy(), arrays["forbidden"]
        if coef.shape != (structure.n_weights,) or not np.isfinite(coef).all():
            raise ValueError(f"expected {structure.n_weights} finite weights, found an array of shape {coef.shape}")
        if len(forbidden) and (forbidden.min() < 0 or forbidden.max() >= structure.n_rules):
            raise ValueError("a forbidden rule is out of range")
        coef[forbidden] = -np.inf
        model._keep(structure, coef)
        model.history_ = history_from_json(meta["history"])
        model.converged_ = bool(meta["converged"])
        model.n_iter_ = int(meta["n_iter"])
        return model


def _leaves(sentences: Any, trees: list[Tree]) -> list[list[str]]:
    """The sentences; where given they must be the leaves of the trees."""
    leaves = [tree.leaves() for tree in trees]
    if sentences is None:
        return leaves
    if isinstance(sentences, str) or len(sentences) != len(trees):
        raise ValueError(f"sentences must be a list of {len(trees)} sentences, one for each tree")
    for number, (sentence, words) in enumerate(zip(sentences, leaves, strict=True)):
        check_sentence(sentence, number)
        if list(sentence) != words:
            raise ValueError(f"sentence {number} is {list(sentence)!r}, but the leaves of its tree are {words!r}")
    return leaves


def _encode(
    grammar: Grammar, sentences: list[list[str]], trees: list[Tree]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    X, Y = [], []
    for number, (sentence, tree) in enumerate(zip(sentences, trees, strict=True)):
        X.append(grammar.encode(sentence, number))
        try:
            Y.append(grammar.derivation(tree))
        except ValueError as error:
            raise ParseError(number, None, f"its tree is none of the grammar's: {error}") from error
    return X, Y


def _replaced(tree: Tree, rare: set[str]) -> Tree:
    """The tree with rare words replaced by the unknown word."""
    children = [
        _replaced(child, rare) if isinstance(child, Tree) else UNKNOWN if child in rare else child
        for child in tree.children
    ]
    return Tree(tree.label, children)


def _chunks(encoded: list[np.ndarray], cells: int = 200_000) -> list[slice]:
    """Slices of sentences with about so many cells, so that span scores of a large batch do not fill the memory."""
    slices, start, total = [], 0, 0
    for at, x in enumerate(encoded):
        total += len(x) * (len(x) + 1) // 2
        if total >= cells:
            slices.append(slice(start, at + 1))
            start, total = at + 1, 0
    if start < len(encoded):
        slices.append(slice(start, len(encoded)))
    return slices
