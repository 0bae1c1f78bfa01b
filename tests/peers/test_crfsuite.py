"""Chain CRFs beside CRFsuite: the same function, the same answers from the same weights, and the optimum reached."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import FeatureIndex, LabelIndex
from mercer.datasets import make_chain_task
from mercer.learning import Log, Risk
from mercer.structures import Chain
from mercer.tagging import Tagger

pycrfsuite = pytest.importorskip("pycrfsuite", reason="pycrfsuite: not installed")


class Fitted:
    """A model of CRFsuite, its objective, and its weights in the layout of our chain."""

    def __init__(self, X, y, folder, c2: float) -> None:
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        for xs, ys in zip(X, y, strict=True):
            trainer.append(xs, ys)
        trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": 500})
        path = str(folder / "model.crfsuite")
        trainer.train(path)
        self.loss = trainer.logparser.last_iteration["loss"]
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(path)
        self.index, self.labels = FeatureIndex(), LabelIndex.from_sequences(y)
        self.sequences = self.index.learn(X)
        self.chain = Chain(len(self.labels), len(self.index))
        self.w = np.zeros(self.chain.n_weights)
        number = {label: i for i, label in enumerate(self.labels.classes)}
        nodes = self.w[self.chain.slices["nodes"]].reshape(len(self.index), len(self.labels))
        moves = self.w[self.chain.slices["transitions"]].reshape(len(self.labels), len(self.labels))
        info = self.tagger.info()
        for (name, label), weight in info.state_features.items():
            nodes[self.index.find(name), number[label]] = weight
        for (before, after), weight in info.transitions.items():
            moves[number[before], number[after]] = weight


@pytest.fixture(params=range(3))
def task(request):
    return make_chain_task(
        n_train=40, n_test=20, n_labels=4, n_features=60, length=(3, 15), active=4, random_state=request.param
    )


def test_equal_weights_give_equal_objectives_labels_and_marginals(task, tmp_path):
    fitted = Fitted(task.X_train, task.y_train, tmp_path, 1.0)
    tags = fitted.labels.encode(task.y_train, fitted.sequences.lengths)
    risk = Risk(fitted.chain, Log(), fitted.sequences, tags)
    assert risk.value(fitted.w) + float(fitted.w @ fitted.w) == pytest.approx(fitted.loss, rel=1e-5)
    test = fitted.index.encode(task.X_test)
    theta = fitted.chain.scores(fitted.w, test)
    best = np.array(fitted.labels.classes)[fitted.chain.argmax(theta)[0]]
    marginals = fitted.chain.marginals(theta).nodes
    at = 0
    for x in task.X_test:
        assert best[at : at + len(x)].tolist() == fitted.tagger.tag(x)
        for t in range(len(x)):
            expected = [fitted.tagger.marginal(label, t) for label in fitted.labels.classes]
            np.testing.assert_allclose(marginals[at + t], expected, atol=1e-5)
        at += len(x)


@pytest.mark.parametrize("c2", [0.1, 1.0])
def test_training_reaches_the_objective_of_crfsuite(task, tmp_path, c2):
    theirs = Fitted(task.X_train, task.y_train, tmp_path, c2)
    # NLL + c2 ‖w‖² is 2 c2 times ½ ‖w‖² + C NLL with C = 1 / (2 c2), over weights of the pairs that occur.
    ours = Tagger(C=1 / (2 * c2), tol=1e-6, max_iter=1000).fit(task.X_train, task.y_train)
    assert 2 * c2 * ours.history_["objective"][-1] <= theirs.loss * (1 + 1e-5)
