"""Chunking end to end: template, tagger, span scores; on text if it is at hand, and on a planted grammar."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from mercer.data import Template
from mercer.datasets import load_basenp
from mercer.metrics import span_report
from mercer.tagging import Constraints, Tagger

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


def columns(sentences):
    return [[token[:-1] for token in sentence] for sentence in sentences]


def tags(sentences):
    return [[token[-1] for token in sentence] for sentence in sentences]


# ---------------------------------------------------------------------------------------- real text


@needs_data
def test_base_noun_phrases_score_as_published():
    """900 sentences, 20 / 40 / 40, C by the second part; the thesis prints F1 89.48."""
    sentences = load_basenp("train") + load_basenp("test")
    assert len(sentences) == 900
    order = np.random.default_rng(0).permutation(900)
    train, held, test = ([sentences[i] for i in part] for part in np.split(order, [180, 540]))

    def fitted(C, tol=None):
        return Tagger(C=C, tol=tol, template=Template.load("words+pos"), n_jobs=1).fit(columns(train), tags(train))

    held_f1 = {C: span_report(tags(held), fitted(C, 1e-3).predict(columns(held))).f1 for C in (0.3, 1.0, 3.0, 10.0)}
    report = span_report(tags(test), fitted(max(held_f1, key=held_f1.get)).predict(columns(test)))
    assert abs(100 * report.f1 - 89.5) < 3
    assert report.accuracy > 0.94


# ---------------------------------------------------------------------------------------- a planted grammar

# A sentence is a row of chunks. The first word of a chunk tells its type; the words that follow come from one
# vocabulary for all types ("O" words often from it too), so far from its opening a token alone says little,
# and the label before it much. One opening in eight may open any type; there the order of chunks helps.
_AFTER = {
    "NP": (("VP", "PP", "O"), (0.7, 0.2, 0.1)),
    "VP": (("NP", "PP"), (0.8, 0.2)),
    "PP": (("NP",), (1.0,)),
    "O": (("NP",), (1.0,)),
}


def planted(n, seed):
    rng = np.random.default_rng(seed)

    def word(kind, size):
        return f"{kind}{int(size * rng.random() ** 2)}"

    sentences = []
    for _ in range(n):
        sentence, kind = [], "NP"
        for _ in range(rng.integers(3, 8)):
            if kind == "O":
                sentence.append((word("o", 5) if rng.random() < 0.7 else word("x", 30), "O"))
            else:
                opening = word("any", 4) if rng.random() < 1 / 8 else word(kind.lower(), 15)
                sentence.append((opening, f"B-{kind}"))
                sentence += [(word("x", 30), f"I-{kind}") for _ in range(rng.integers(0, 5))]
            kind = str(rng.choice(_AFTER[kind][0], p=_AFTER[kind][1]))
        sentences.append(sentence)
    return sentences


@pytest.fixture(scope="module")
def grammar():
    return planted(300, seed=0), planted(200, seed=1)


TEMPLATE = Template.parse("U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nB")


def independent_f1(train, test):
    """Logistic regression on the same features, each token for itself."""
    vectorizer = DictVectorizer()

    def tokens(sentences):
        return [dict.fromkeys(f, 1) for s in columns(sentences) for f in TEMPLATE.expand(s)[0]]

    model = LogisticRegression(C=1.0, max_iter=300)
    model.fit(vectorizer.fit_transform(tokens(train)), np.concatenate(tags(train)))
    predicted = model.predict(vectorizer.transform(tokens(test)))
    cuts = np.cumsum([len(sentence) for sentence in test])[:-1]
    return span_report(tags(test), [part.tolist() for part in np.split(predicted, cuts)]).f1


def test_a_planted_grammar_is_found_where_single_tokens_do_not_tell(grammar):
    train, test = grammar
    tagger = Tagger(C=1.0, template=TEMPLATE, n_jobs=1).fit(columns(train), tags(train))
    f1 = span_report(tags(test), tagger.predict(columns(test))).f1
    alone = independent_f1(train, test)
    assert f1 > 0.88
    assert f1 > alone + 0.2


def test_constrained_chunks_are_well_formed_and_not_worse(grammar):
    train, test = grammar
    rules = Constraints.bio({label for labels in tags(train) for label in labels})
    free = Tagger(C=1.0, template=TEMPLATE, n_jobs=1).fit(columns(train), tags(train))
    bound = Tagger(C=1.0, template=TEMPLATE, constraints=rules, n_jobs=1).fit(columns(train), tags(train))
    predicted = bound.predict(columns(test))
    assert all(rules.allows(labels) for labels in predicted)
    f1 = span_report(tags(test), predicted).f1
    assert f1 > span_report(tags(test), free.predict(columns(test))).f1 - 0.01


def test_a_labelling_the_model_is_sure_of_is_more_often_right(grammar):
    """The thesis splits sentences at p = 1/2. The penalty makes it modest, so only the order is asked for."""
    train, test = grammar
    tagger = Tagger(C=1.0, template=TEMPLATE, n_jobs=1).fit(columns(train), tags(train))
    best = [ranks[0] for ranks in tagger.k_best(columns(test), 1)]
    sure = np.array([log_p > np.log(0.5) for _, log_p in best])
    right = np.array([labels == truth for (labels, _), truth in zip(best, tags(test), strict=True)])
    assert 0.05 < sure.mean() < 0.95
    assert right[sure].mean() > 0.8
    assert right[sure].mean() > right[~sure].mean() + 0.1
