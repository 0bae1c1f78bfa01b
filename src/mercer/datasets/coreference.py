"""Documents of noun phrases that refer to people, places, companies and groups: a coreference task of any size.

A document mentions several entities, each with a gender, a number, a name and a common noun. The first mention of an
entity is its full name or its noun. Later mentions are a part of the name, the noun, a synonym or a pronoun; pronouns
are more likely if the last mention is near. Two people of a document may share a last name (a family), and entities
often share nouns. The gender and number of a mention are sometimes missing or wrong, as in the output of a tagger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["COREFERENCE_FEATURES", "Coreference", "coreference_features", "make_coreference"]

Mention = dict[str, Any]

_FIRST = {
    "female": ["Ada", "Clara", "Emmy", "Grace", "Lise", "Maria", "Rosa", "Sofia"],
    "male": ["Alan", "Carl", "David", "Emil", "Isaac", "Leon", "Omar", "Paul"],
}
_LAST = ["Abel", "Brandt", "Cole", "Diaz", "Engel", "Frost", "Garcia", "Hahn", "Ito", "Jung", "Kern", "Lowe"]
_THINGS = ["Arcon", "Belmar", "Corvex", "Delphi", "Elbia", "Fintra", "Gallus", "Hydra", "Ixion", "Jovia"]
_NOUNS = {
    "person": [("president", "leader"), ("engineer", "inventor"), ("painter", "artist"), ("doctor", "physician")],
    "thing": [("company", "firm"), ("city", "town"), ("bank", "lender"), ("river", "stream")],
    "group": [("workers", "employees"), ("players", "athletes"), ("judges", "jurors"), ("farmers", "growers")],
}
_PRONOUNS = {"female": ["she", "her"], "male": ["he", "him"], "neuter": ["it", "its"], "plural": ["they", "them"]}

COREFERENCE_FEATURES = (
    "same words",
    "same last word",
    "some common word",
    "synonyms",
    "different names",
    "different nouns",
    "gender agrees",
    "gender differs",
    "number agrees",
    "number differs",
    "same pronoun",
    "different pronouns",
    "one pronoun",
    "pronoun and the same sentence",
    "pronoun and the sentence before",
    "sentences between (log)",
    "pronoun and sentences between (log)",
)
"""Names of the features of :func:`coreference_features`, in order."""


class Coreference(NamedTuple):
    """Training and test documents; see :func:`make_coreference`."""

    X_train: list[list[Mention]]
    y_train: list[list[int]]
    X_test: list[list[Mention]]
    y_test: list[list[int]]


def make_coreference(
    n_train: int = 100,
    n_test: int = 50,
    n_entities: tuple[int, int] = (3, 6),
    n_mentions: tuple[int, int] = (10, 25),
    noise: float = 0.1,
    random_state: int | np.random.Generator | None = 0,
) -> Coreference:
    """Draw documents: lists of mentions, and the entity of each mention.

    Parameters
    ----------
    n_train, n_test : int
        Numbers of documents.
    n_entities, n_mentions : (low, high)
        Numbers of entities and mentions per document, uniform from ``low`` to ``high``, both included. An entity may
        have no mention.
    noise : float, default=0.1
        Probability that a mention lacks its gender or number; a wrong value has half this probability.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same documents.

    Returns
    -------
    task : Coreference
        ``X_train``, ``y_train``, ``X_test``, ``y_test``. A mention is a dict: ``words`` (a list), ``kind`` ("name",
        "noun" or "pronoun"), ``gender`` ("female", "male", "neuter" or None), ``number`` ("singular", "plural" or None)
        and ``sentence`` (a number). :func:`coreference_features` compares two of them.

    Examples
    --------
    >>> from mercer.datasets import make_coreference
    >>> task = make_coreference(n_train=5, n_test=2)
    >>> len(task.X_train), len(task.X_train[0]) == len(task.y_train[0])
    (5, True)
    >>> sorted(task.X_train[0][0])
    ['gender', 'kind', 'number', 'sentence', 'words']
    """
    for name, count in (("n_train", n_train), ("n_test", n_test)):
        if count < 0:
            raise ValueError(f"{name} must not be negative, found {count}")
    for name, (low, high) in (("n_entities", n_entities), ("n_mentions", n_mentions)):
        if not 1 <= low <= high:
            raise ValueError(f"{name} must be a pair (low, high) with 1 <= low <= high, found {(low, high)}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must lie between 0 and 1, found {noise}")
    rng = np.random.default_rng(random_state)
    documents = [_document(n_entities, n_mentions, noise, rng) for _ in range(n_train + n_test)]
    X, y = [mentions for mentions, _ in documents], [labels for _, labels in documents]
    return Coreference(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _entity(rng: np.random.Generator, others: list[dict[str, Any]]) -> dict[str, Any]:
    kind = str(rng.choice(["person", "person", "thing", "group"]))
    noun, synonym = _NOUNS[kind][rng.integers(4)]
    if kind == "person":
        gender = str(rng.choice(["female", "male"]))
        family = [other["name"][-1] for other in others if other["kind"] == "person"]
        last = str(rng.choice(family)) if family and rng.random() < 0.2 else str(rng.choice(_LAST))
        name = [str(rng.choice(_FIRST[gender])), last]
    else:
        gender = "neuter"
        name = [str(rng.choice(_THINGS))] if kind == "thing" else []
    number = "plural" if kind == "group" else "singular"
    return {"kind": kind, "gender": gender, "number": number, "name": name, "noun": noun, "synonym": synonym}


def _document(
    n_entities: tuple[int, int], n_mentions: tuple[int, int], noise: float, rng: np.random.Generator
) -> tuple[list[Mention], list[int]]:
    entities: list[dict[str, Any]] = []
    for _ in range(int(rng.integers(n_entities[0], n_entities[1] + 1))):
        entities.append(_entity(rng, entities))
    weights = rng.dirichlet(np.full(len(entities), 2.0))
    mentions: list[Mention] = []
    labels: list[int] = []
    last_seen: dict[int, int] = {}
    sentence = 0
    for _ in range(int(rng.integers(n_mentions[0], n_mentions[1] + 1))):
        # Who was just spoken of is spoken of again.
        again = labels and rng.random() < 0.3
        who = labels[-1] if again else int(rng.choice(len(entities), p=weights))
        mentions.append(_mention(entities[who], sentence, last_seen.get(who), noise, rng))
        labels.append(who)
        last_seen[who] = sentence
        sentence += int(rng.random() < 0.5)
    return mentions, labels


def _mention(
    entity: dict[str, Any], sentence: int, last: int | None, noise: float, rng: np.random.Generator
) -> Mention:
    pronoun = 0.0 if last is None else 0.6 * 0.5 ** (sentence - last)
    if rng.random() < pronoun:
        key = "plural" if entity["number"] == "plural" else entity["gender"]
        kind, words = "pronoun", [str(rng.choice(_PRONOUNS[key]))]
    elif entity["name"] and rng.random() < 0.6:
        whole = last is None or rng.random() < 0.3
        kind, words = "name", entity["name"] if whole else entity["name"][-1:]
    else:
        kind, words = "noun", [entity["synonym"] if last is not None and rng.random() < 0.3 else entity["noun"]]
    # A last name or a noun such as "leader" does not tell the gender of a person.
    shown = entity["gender"] if kind == "pronoun" or len(words) > 1 or entity["kind"] != "person" else None
    if kind == "pronoun" and entity["number"] == "plural":
        shown = None
    return {
        "words": list(words),
        "kind": kind,
        "gender": _noisy(shown, ("female", "male", "neuter"), noise, rng),
        "number": _noisy(entity["number"], ("singular", "plural"), noise, rng),
        "sentence": sentence,
    }


def _noisy(value: str | None, values: tuple[str, ...], noise: float, rng: np.random.Generator) -> str | None:
    draw, other = rng.random(), str(rng.choice(values))
    if value is None or draw < noise:
        return None
    return other if draw < 1.5 * noise else value


_SYNONYMS = {frozenset(pair) for pairs in _NOUNS.values() for pair in pairs}


def coreference_features(a: Mapping[str, Any], b: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the features of two mentions; :data:`COREFERENCE_FEATURES` lists their names.

    Parameters
    ----------
    a, b : mentions of one document, in any order

    Returns
    -------
    features : array of shape (17,)

    Examples
    --------
    >>> from mercer.datasets import COREFERENCE_FEATURES, coreference_features
    >>> a = {"words": ["Ada", "Kern"], "kind": "name", "gender": "female", "number": "singular", "sentence": 0}
    >>> b = {"words": ["she"], "kind": "pronoun", "gender": "female", "number": "singular", "sentence": 1}
    >>> [name for name, value in zip(COREFERENCE_FEATURES, coreference_features(a, b)) if value == 1]
    ['gender agrees', 'number agrees', 'one pronoun', 'pronoun and the sentence before']
    """
    pronouns = (a["kind"] == "pronoun") + (b["kind"] == "pronoun")
    words, others = [w.lower() for w in a["words"]], [w.lower() for w in b["words"]]
    both = (a["kind"], b["kind"])
    common = bool(set(words) & set(others))
    synonyms = frozenset((words[-1], others[-1])) in _SYNONYMS
    between = abs(a["sentence"] - b["sentence"])
    same_pronoun = pronouns == 2 and _form(words[0]) == _form(others[0])
    known_gender = a["gender"] is not None and b["gender"] is not None
    known_number = a["number"] is not None and b["number"] is not None
    distance = float(np.log1p(between))
    return np.array(
        [
            pronouns == 0 and words == others,
            pronouns == 0 and words[-1] == others[-1],
            pronouns == 0 and common,
            pronouns == 0 and synonyms,
            both == ("name", "name") and not common,
            both == ("noun", "noun") and not common and not synonyms,
            known_gender and a["gender"] == b["gender"],
            known_gender and a["gender"] != b["gender"],
            known_number and a["number"] == b["number"],
            known_number and a["number"] != b["number"],
            same_pronoun,
            pronouns == 2 and not same_pronoun,
            pronouns == 1,
            pronouns == 1 and between == 0,
            pronouns == 1 and between == 1,
            distance,
            distance if pronouns else 0.0,
        ],
        dtype=float,
    )


def _form(pronoun: str) -> str:
    """Return the key of a pronoun's list; she and her have the same key."""
    return next((key for key, forms in _PRONOUNS.items() if pronoun in forms), pronoun)
