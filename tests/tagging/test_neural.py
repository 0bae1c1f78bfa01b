"""A module with a chain on top is trained, predicts, and comes back from its file."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer.tagging import Constraints, NeuralTagger  # noqa: E402

X = [["the", "dog", "barks"], ["a", "dog"], ["the", "cat", "sleeps"], ["a", "cat", "barks"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]


def module(n_inputs, n_labels):
    return torch.nn.Sequential(torch.nn.Embedding(n_inputs, 8), torch.nn.Linear(8, n_labels))


class Pairs(torch.nn.Module):
    """Sums of embeddings of several fields."""

    def __init__(self, sizes, n_labels):
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Embedding(n, n_labels) for n in sizes)

    def forward(self, x):
        return sum(part(x[..., k]) for k, part in enumerate(self.parts))


@pytest.fixture(scope="module")
def tagger():
    return NeuralTagger(module, max_iter=40, learning_rate=0.05, random_state=0).fit(X, Y)


def test_it_learns_and_answers_every_question(tagger):
    assert tagger.predict(X) == Y
    assert tagger.score(X, Y) == 1.0
    assert tagger.history_["loss"][-1] < tagger.history_["loss"][0]
    mu, ranked = tagger.predict_marginals(X[:1])[0], tagger.k_best(X[:1], 2)[0]
    np.testing.assert_allclose(mu.sum(axis=1), 1.0, atol=1e-5)
    assert ranked[0][0] == Y[0]
    assert tagger.log_likelihood(X[:1], Y[:1])[0] == pytest.approx(ranked[0][1], abs=1e-4)
    assert len(tagger.predict([["unseen", "words"]])[0]) == 2


def test_a_seed_repeats_and_leaves_torch_alone(tagger):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    again = NeuralTagger(module, max_iter=40, learning_rate=0.05, random_state=0).fit(X, Y)
    assert torch.equal(before, torch.random.get_rng_state())
    assert again.history_ == tagger.history_


def test_files_hold_weights_labels_and_words(tagger, tmp_path):
    tagger.save(tmp_path / "model.safetensors")
    other = NeuralTagger.load(tmp_path / "model.safetensors", module)
    assert other.predict(X) == Y
    np.testing.assert_allclose(other.log_likelihood(X, Y), tagger.log_likelihood(X, Y), rtol=1e-5)
    rules = NeuralTagger(module, "hinge", constraints=Constraints([("DET", "DET")]), max_iter=1).fit(X, Y)
    rules.save(tmp_path / "rules.safetensors")
    back = NeuralTagger.load(tmp_path / "rules.safetensors", module)
    assert (back.loss, back.constraints) == ("hinge", rules.constraints)


def test_tuples_columns_numbers_and_unknown_labels():
    paired = [[(word, word[-1]) for word in x] for x in X]
    found = NeuralTagger(Pairs, max_iter=60, learning_rate=0.1, random_state=0).fit(paired, Y)
    assert found.predict(paired) == Y
    random = np.random.default_rng(0)
    rows = [random.normal(size=(n, 2)) for n in (5, 3, 4)]
    labels = [[int(v > 0) for v in x[:, 0]] for x in rows]
    labels[0][1] = None
    linear = NeuralTagger(torch.nn.Linear(2, 2), max_iter=60, learning_rate=0.2, batch_size=2, random_state=0).fit(
        rows, labels
    )
    assert linear.score(rows, labels) > 0.9
    numbers = NeuralTagger(module, max_iter=2, random_state=0).fit([[1, 2], [3]], [["a", "b"], ["b"]])
    assert numbers.n_inputs_ == 4


def test_held_out_data_choose_the_epoch():
    found = NeuralTagger(module, max_iter=30, learning_rate=0.05, patience=2, random_state=0).fit(
        X, Y, dev=(X[:2], Y[:2])
    )
    assert found.score(X[:2], Y[:2]) == max(found.history_["score"])
    assert found.n_iter_ == len(found.history_["loss"])


def test_bad_input_is_named_and_a_failed_fit_leaves_the_model(tagger):
    for call, message in (
        (lambda: NeuralTagger(module).fit(X, Y[:2]), "equally many"),
        (lambda: NeuralTagger(module, max_iter=0).fit(X, Y), "max_iter"),
        (lambda: NeuralTagger(module).fit([[]], [[]]), "position|label"),
        (lambda: NeuralTagger(torch.nn.Linear(2, 5)).fit([np.zeros((2, 2))], [["a", "b"]]), "emissions of shape"),
        (lambda: tagger.predict([[]]), "empty"),
        (lambda: tagger.k_best(X, 0), "k must"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="module"):
        NeuralTagger(lambda n, m: "no module").fit(X, Y)
    with pytest.raises(Exception, match="not fitted"):
        NeuralTagger(module).predict(X)
    assert tagger.predict(X) == Y
