"""The parser estimator: a grammar read from trees, with weights by counting or margin training.

    "pcfg":  w[A → β] = log (count(A → β) / count(A)), maximum likelihood
    "ssvm":  minimise ½‖w‖² + C Σ_i loss(x_i, y_i; w),  score(x, y) = ⟨w, Φ(x, y)⟩,  Φ = counts of rules

Prediction is the tree of highest score, by a compiled chart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from mercer._estimator import Outputs
from mercer._state.saved import Fields, Floats, Nested, check_shapes
from mercer._validation import check_choice, check_count, check_flag, thread_count
from mercer.data.trees import Tree
from mercer.exceptions import ParseError
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import StructuredEstimator
from mercer.learning.losses import Log, Loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.metrics import bracket_f1
from mercer.structures.grammar import Grammar, check_sentence, check_trees, stack_offsets
from mercer.structures.joint import Examples
from mercer.structures.trees import COSTS, FEATURES, TreeBatches, TreeStructure

UNKNOWN = "<unknown>"


class Parser(StructuredEstimator):
    """Learn the weights of a grammar from trees, and parse.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"hybrid"``, ``"adaptive-hybrid"``,
        ``"relative-margin"``, ``"circle"`` or ``"log"`` (a conditional random field over trees).
    solver : str or Solver, default="auto"
        ``"bcfw"``, ``"cutting-plane"``, ``"bmrm"`` or ``"subgradient"``; ``"lbfgs"`` for smooth losses (``"owlqn"``
        with an ℓ1 penalty); ``"auto"`` chooses by the loss (``"bcfw"`` for the hinge);
        ``"averaged-perceptron"``, ``"passive-aggressive"`` and, for the log loss, ``"sgd"`` take one sentence per step.
    C : float, default=1.0
        Weight of the summed loss: ``penalty(w) + C · Σ loss``.
    method : {"ssvm", "pcfg"}, default="ssvm"
        ``"pcfg"`` sets the weights to logarithms of relative frequencies instead; loss, solver, C, cost and features
        are then ignored.
    cost : {"bracket", "zero-one", "f1"}, default="bracket"
        Δ of the margin: brackets in one tree only, whether the trees differ, or 1 − F1 of the brackets. All three
        searches are exact; ``"f1"`` takes longer, above all for long sentences.
    grammar : Grammar, optional
        The rules; by default those of the training trees. Its weights are used only if no trees are given.
    features : {"rules", "rules+boundaries"}, default="rules"
        Counts of rules; or also the label of each bracket with the words at its edges (see :class:`TreeStructure`).
    preterminals : bool, default=True
        Whether a node directly above a single word is a bracket, in costs and in :meth:`score`. With words as leaves,
        False excludes the parts of speech, as PARSEVAL does.
    rare : int, default=0
        Words with at most this count in training are treated as one unknown word, like new words later. With 0, new
        words cannot be parsed.
    smoothing : float, default=0.0
        With ``"pcfg"``: pseudo-count of each rule.
    on_failure : {"raise", "none"}, default="raise"
        Result of :meth:`predict` for a sentence without a tree: raise :class:`ParseError`, or return None.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"`` or ``"sgd"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; without ``grammar``, new rules and words are allowed.
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
    solver_ : str
        The solver that ran; ``"counts"`` for ``"pcfg"``.
    converged_ : bool
    interrupted_ : bool
        Whether Ctrl-C ended the training.
    n_iter_ : int

    References
    ----------
    .. [Tsochantaridis2005] I. Tsochantaridis, T. Joachims, T. Hofmann and Y. Altun. Large margin methods for structured
       and interdependent output variables. Journal of Machine Learning Research 6, 2005.

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

    _output_form = Outputs("trees", ("bracket_f1",))

    coef_: np.ndarray
    grammar_: Grammar
    structure_: TreeStructure

    saved = StructuredEstimator.saved | Fields(grammar_=Nested(Grammar), coef_=Floats(finite=False))
    lacks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("predict_marginals", "sample", "entropy"), "the compiled charts do not implement this method yet"
    )

    def __init__(
        self,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
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
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
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
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Sequence[Sequence[str]] | None,
        y: Sequence[Tree],
        sample_weight: Any = None,
        *,
        dev: tuple[Sequence[Sequence[str]] | None, Sequence[Tree]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Parser:
        """Learn from sentences and their trees.

        Parameters
        ----------
        X : list of lists of words, or None
            None: the leaves of the trees. Otherwise they must agree with them.
        y : list of Tree
        sample_weight : array of a number for each sentence, optional
            Non-negative factors of C. Not for ``method="pcfg"``.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises. Not for ``method="pcfg"``.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again. Not
            for ``method="pcfg"``, which only counts.

        Returns
        -------
        self
        """
        if self.method != "pcfg":
            return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)
        self._check()
        for name, given in (("checkpoint", checkpoint), ("dev", dev), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(f"method='pcfg' only counts rules and does not use {name}; omit {name}")
        sentences, trees, grammar = self._sentences(X, y, None)
        self._count(grammar, _encode(grammar, sentences, trees)[1])
        return self

    def partial_fit(self, X: Sequence[Sequence[str]] | None, y: Sequence[Tree]) -> Parser:
        """Make one pass of an online solver over more sentences; new rules and words are allowed without ``grammar``.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        if self.method == "pcfg":
            raise ValueError("partial_fit is for method='ssvm': 'pcfg' counts all trees at once")
        return self._partial_fit(X, y)

    def _check(self) -> None:
        check_choice("method", self.method, ("ssvm", "pcfg"))
        check_choice("cost", self.cost, COSTS)
        check_choice("features", self.features, FEATURES)
        check_choice("on_failure", self.on_failure, ("raise", "none"))
        check_count("rare", self.rare, 0)
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            raise TypeError(f"grammar must be a Grammar or None, got {type(self.grammar).__name__}")
        if self.grammar is not None and self.rare:
            raise ValueError(
                "rare adds an unknown word to a grammar read from trees; a given grammar has its own, unknown="
            )

    def _sentences(self, X: Any, y: Any, last: Any) -> tuple[list[list[str]], list[Tree], Grammar]:
        trees = check_trees(y, "y")
        sentences = _leaves(X, trees)
        grammar, trees = self._grammar_of(trees, None if last is None else last.grammar_)
        return sentences, trees, grammar

    def _reason_against_parts(self) -> str | None:
        return "the rules of its grammar are read from all trees at once"

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any) -> Risk:
        sentences, trees, grammar = self._sentences(X, y, last)
        inputs, outputs = _encode(grammar, sentences, trees)
        self.structure_ = TreeStructure(grammar, self.cost, features=self.features, preterminals=self.preterminals)
        return Risk(self._structure(), loss, Examples(inputs), Examples(outputs))

    def _structure(self) -> TreeBatches:
        return TreeBatches(self.structure_, thread_count(self.n_jobs))

    def _read(self, X: Any, y: Any) -> tuple[list[list[str]], list[Tree]]:
        trees = check_trees(y, "y")
        return _leaves(X, trees), trees

    def _quality(self, w: np.ndarray, X: list[list[str]], y: list[Tree]) -> float:
        parses = self._search(X, 1, fail=False, w=w)
        predicted = [one[0][0] if one else None for one in parses]
        return bracket_f1(y, predicted, preterminals=self.preterminals).f1

    def _arrays(self, X: Any, y: Any) -> Iterable[np.ndarray | None]:
        if isinstance(X, Examples):
            return [np.array([(len(x), len(tree)) for x, tree in zip(X, y, strict=True)]), *X, *y]
        return [np.frombuffer("\n".join(map(str, y)).encode(), np.uint8)]  # held-out trees may have other rules

    def _settings(self, risk: Risk) -> Any:
        return self.structure_.grammar.rules

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        """Copy the weights of rules and boundary features to their new positions; new weights start at 0."""
        old, new = last.structure_, self.structure_
        carried, w = np.zeros(new.n_weights), np.where(np.isfinite(w), w, 0.0)
        number = {rule: n for n, rule in enumerate(new.grammar.rules)}
        known = [(number[rule], n) for n, rule in enumerate(old.grammar.rules) if rule in number]
        to, at = np.array(known, dtype=np.int64).reshape(-1, 2).T
        carried[to] = w[at]
        if old.n_weights > old.n_rules and new.n_weights > new.n_rules:
            kinds = (w[old.n_rules :], old), (carried[new.n_rules :], new)
            before, after = (part.reshape(-1, len(s.grammar.words) + 1, s.n_labels) for part, s in kinds)
            words = _places([*old.grammar.words, None], [*new.grammar.words, None])
            labels = _places(old.grammar.labels, new.grammar.labels)
            after[np.ix_(range(len(after)), words[1], labels[1])] = before[
                np.ix_(range(len(before)), words[0], labels[0])
            ]
        return carried

    def _keep(self, w: np.ndarray) -> None:
        self.coef_ = w
        self.grammar_ = self.structure_.grammar.with_weights(w[: self.structure_.n_rules])

    def _grammar_of(self, trees: list[Tree], last: Grammar | None) -> tuple[Grammar, list[Tree]]:
        """Return the grammar, including the rules of a warm start, and the trees with rare words replaced."""
        if self.grammar is not None:
            return self.grammar, trees
        unknown = None
        if self.rare:
            seen = Counter(word for tree in trees for word in tree.leaves())
            known = set() if last is None else set(last.words)
            few = {word for word, count in seen.items() if count <= self.rare and word not in known}
            if not few and (last is None or last.unknown is None):
                raise ValueError(
                    f"rare={self.rare}, but every word occurs more often: there is no unknown word to learn"
                )
            trees, unknown = [_replaced(tree, few) for tree in trees], UNKNOWN
        if last is None:
            return Grammar.from_trees(trees, self.smoothing, cycles="once", unknown=unknown), trees
        grammar = Grammar.from_trees(trees, self.smoothing, cycles="once")
        if grammar.start != last.start:
            raise ValueError(
                f"the trees have the root label {grammar.start}, but the model to continue from has {last.start}"
            )
        rules = list(dict.fromkeys([*last.rules, *grammar.rules]))
        return Grammar(rules, None, last.start, cycles="once", unknown=unknown or last.unknown), trees

    def _count(self, grammar: Grammar, Y: list[np.ndarray]) -> None:
        if self.grammar is not None:  # the rules are given, the counts are those of the trees
            counts = np.bincount(np.concatenate(Y), minlength=len(grammar.rules)) + float(self.smoothing)
            parents = np.array([grammar.labels.index(rule.parent) for rule in grammar.rules])
            totals = np.bincount(parents, weights=counts)[parents]
            with np.errstate(divide="ignore", invalid="ignore"):
                grammar = grammar.with_weights(np.where(counts > 0, np.log(counts / totals), -np.inf))
        self.structure_ = TreeStructure(grammar, self.cost, preterminals=self.preterminals)
        self._keep_given(grammar.weights, "counts")

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Sequence[Sequence[str]]) -> list[Tree | None]:
        """Return the best tree of each sentence; see ``on_failure`` for sentences without a tree.

        Parameters
        ----------
        X : list of sentences
            Lists of words.

        Returns
        -------
        list of Tree or None
        """
        return [parses[0][0] if parses else None for parses in self._search(X, 1)]

    def k_best(self, X: Sequence[Sequence[str]], k: int) -> list[list[tuple[Tree, float]]]:
        """Return for each sentence the k best trees with their scores, best first; fewer if there are fewer.

        Scores are log p(tree) for ``method="pcfg"``, log p(tree | sentence) for the log loss, and ⟨w, Φ⟩ otherwise.
        """
        parses = self._search(X, check_count("k", k))
        if self.method == "pcfg" or not self._is_log():
            return parses
        z = self._log_partitions(X)
        return [[(tree, score - total) for tree, score in trees] for trees, total in zip(parses, z, strict=True)]

    def log_likelihood(self, X: Sequence[Sequence[str]] | None, y: Sequence[Tree] | None = None) -> np.ndarray:
        """Return the log-probabilities, one per sentence; −inf if the grammar derives no tree.

        Parameters
        ----------
        X : list of lists of words, or None
            None: the leaves of the trees.
        y : list of Tree, optional
            With ``method="pcfg"``: log p(tree) if given, else log p(sentence), the sum over all its trees. The log loss
            needs trees: log p(tree | sentence).
        """
        self._check_is_fitted()
        if self.method != "pcfg" and not self._is_log():
            raise ValueError(f"the loss {self.loss!r} has no probabilities: use loss='log' or method='pcfg'")
        if y is None:
            if self.method != "pcfg":
                raise ValueError("the log loss needs y, the trees: the model is p(tree | sentence)")
            if X is None:
                raise ValueError("pass X (sentences), y (trees) or both")
            return self._log_partitions(X)
        sentences, trees = self._read(X, y)
        scores = np.array([self._tree_score(tree) for tree in trees])
        if self.method == "pcfg":
            return scores
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(scores), -np.inf, scores - self._log_partitions(sentences))

    def score(self, X: Sequence[Sequence[str]] | None, y: Sequence[Tree]) -> float:
        """Return the F1 of the labelled brackets over all sentences; a sentence without a tree has no brackets."""
        return super().score(X, y)

    def _weight_name(self, k: int) -> str:
        s = self.structure_
        if k < s.n_rules:
            return str(s.grammar.rules[k])
        side, rest = divmod(k - s.n_rules, s._edge_words * s.n_labels)
        word, label = divmod(rest, s.n_labels)
        words = [*s.grammar.words, "the edge of the sentence"]
        return f"{('first', 'last', 'before', 'after')[side]} {words[word]}: {s.grammar.labels[label]}"

    def _encoded_outputs(self, x: Any, outputs: list[Any]) -> tuple[Examples, Examples]:
        grammar = self.structure_.grammar
        words = grammar.encode(x)
        return Examples([words] * len(outputs)), Examples([grammar.derivation(tree) for tree in outputs])

    def _is_log(self) -> bool:
        return self.loss == "log" or isinstance(self.loss, Log)

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
        """Return numbers and words of the sentences without unknown words; the others raise an error if requested."""
        if isinstance(sentences, str):
            raise TypeError("X must be a list of lists of words, got a string")
        numbers, encoded = [], []
        for number, sentence in enumerate(sentences):
            try:
                encoded.append(self.structure_.grammar.encode(sentence, number))
                numbers.append(number)
            except ParseError:
                if fail:
                    raise
        return numbers, encoded

    def _search(
        self, sentences: Sequence[Sequence[str]], k: int, fail: bool | None = None, w: np.ndarray | None = None
    ) -> list[list[tuple[Tree, float]]]:
        if w is None:
            self._check_is_fitted()
            w = self.coef_
        fail = self.on_failure == "raise" if fail is None else fail
        structure, grammar = self.structure_, self.structure_.grammar
        numbers, encoded = self._known(sentences, fail)
        result: list[list[tuple[Tree, float]]] = [[] for _ in range(len(sentences))]
        for chunk in _chunks(encoded):
            some = encoded[chunk]
            batch = (structure._rule_weights(w), np.concatenate(some), stack_offsets(some))
            options = (structure._stacked_sigma(w, some), self.preterminals, thread_count(self.n_jobs))
            chart = grammar.chart
            rules, offsets, scores = chart.best(*batch, *options) if k == 1 else chart.k_best(*batch, k, *options)
            for at, score in enumerate(scores.tolist()):
                if score > -np.inf:
                    number = numbers[chunk.start + at // k]
                    tree = grammar.tree(rules[offsets[at] : offsets[at + 1]], sentences[number])
                    result[number].append((tree, score))
        for number, parses in enumerate(result):
            if fail and not parses:
                raise ParseError(number, None)
        return result

    def _log_partitions(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        self._check_is_fitted()
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

    def _saved_params(self) -> dict[str, Any]:
        return {**super()._saved_params(), "grammar": None}  # the learnt one says it all

    def _check_state(self) -> None:
        super()._check_state()
        check_flag("preterminals", self.preterminals)
        features = self.features if self.method == "ssvm" else "rules"
        grammar = self.grammar_.with_weights(np.zeros(len(self.grammar_.rules)))
        self.structure_ = TreeStructure(grammar, self.cost, features=features, preterminals=self.preterminals)
        check_shapes(self, coef_=(self.structure_.n_weights,))
        finite = np.isfinite(self.coef_)
        if not (finite | np.isneginf(self.coef_)).all() or not finite[self.structure_.n_rules :].all():
            raise ValueError("coef_ must contain finite numbers, and −inf for forbidden rules")
        self._keep(self.coef_)


def _places(old: list[Any], new: list[Any]) -> tuple[list[int], list[int]]:
    """Return the positions of the common items in the first and in the second list."""
    place = {item: n for n, item in enumerate(new)}
    both = [(n, place[item]) for n, item in enumerate(old) if item in place]
    return [n for n, _ in both], [n for _, n in both]


def _leaves(sentences: Any, trees: list[Tree]) -> list[list[str]]:
    """Return the sentences; given sentences must equal the leaves of the trees."""
    leaves = [tree.leaves() for tree in trees]
    if sentences is None:
        return leaves
    if isinstance(sentences, str) or len(sentences) != len(trees):
        raise ValueError(f"X must be a list of {len(trees)} sentences, one for each tree")
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
            raise ParseError(number, None, f"the grammar does not derive its tree: {error}") from error
    return X, Y


def _replaced(tree: Tree, rare: set[str]) -> Tree:
    """Return the tree with rare words replaced by the unknown word."""
    children = [
        _replaced(child, rare) if isinstance(child, Tree) else UNKNOWN if child in rare else child
        for child in tree.children
    ]
    return Tree(tree.label, children)


def _chunks(encoded: list[np.ndarray], cells: int = 200_000) -> list[slice]:
    """Split sentences into slices with a limited number of chart cells, to bound the memory of span scores."""
    slices, start, total = [], 0, 0
    for at, x in enumerate(encoded):
        total += len(x) * (len(x) + 1) // 2
        if total >= cells:
            slices.append(slice(start, at + 1))
            start, total = at + 1, 0
    if start < len(encoded):
        slices.append(slice(start, len(encoded)))
    return slices
