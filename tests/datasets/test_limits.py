"""Generators take every value up to the limits of their parameters, and name the parameter beyond them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mercer import datasets
from mercer.datasets.clouds import make_mug
from mercer.datasets.dominance import make_mixed_dominance, make_nondominant

NAN, INF = float("nan"), float("inf")
SHARE = ([0.0, 1.0], [-1e-9, 1 + 1e-9, NAN])
AT_LEAST_0 = ([0.0], [-1e-9, NAN, INF])
POSITIVE = ([1e-3], [0.0, -1.0, NAN, INF])

# (generator, small sizes, parameter, values at the limit, values beyond it)
LIMITS: list[tuple[Callable[..., Any], dict[str, Any], str, list[Any], list[Any]]] = [
    (datasets.make_alignments, {"n": 2}, "length", [0, 1, (2, 2), (2, 3)], [-1, (3, 2), (-1, 2)]),
    (datasets.make_alignments, {"n": 2, "length": 4}, "n_letters", [2, 52], [1, 53]),
    (datasets.make_alignments, {"n": 2, "length": 4}, "conservation", *POSITIVE),
    (datasets.make_alignments, {"n": 2, "length": 4}, "gap_rate", [1e-3, 0.999], [0.0, 1.0]),
    (datasets.make_alignments, {"n": 2, "length": 4}, "gap_extension", [1e-3, 0.9], [0.0, 1.0]),
    (datasets.make_alignments, {"n": 2, "length": 4}, "flank", [0], [-1]),
    (datasets.make_alignments, {"length": 4}, "n", [0, 1], [-1]),
    (datasets.make_chain_task, {"n_test": 1, "n_features": 40, "active": 2}, "n_train", [0, 1], [-1]),
    (datasets.make_chain_task, {"n_train": 1, "n_features": 40, "active": 2}, "n_test", [0, 1], [-1]),
    (datasets.make_chain_task, {"n_train": 2, "n_test": 1, "active": 1, "n_labels": 2}, "n_features", [1, 2], [0]),
    (datasets.make_chain_task, {"n_train": 2, "n_test": 1, "n_features": 5, "n_labels": 2}, "active", [1, 5], [0, 6]),
    (datasets.make_chain_task, {"n_train": 2, "n_test": 1, "n_features": 5, "active": 2}, "n_labels", [1, 2], [0]),
    (
        datasets.make_chain_task, {"n_train": 2, "n_test": 1, "n_features": 5, "active": 2}, "length",
        [1, (1, 1), (2, 3)], [0, (0, 2), (3, 2)],
    ),
    (make_mug, {}, "n_points", [1], [0]),
    (make_mug, {"n_points": 9}, "noise", *AT_LEAST_0),
    (datasets.make_coreference, {"n_test": 1}, "n_train", [0], [-1]),
    (datasets.make_coreference, {"n_train": 1}, "n_test", [0], [-1]),
    (datasets.make_coreference, {"n_train": 1, "n_test": 1}, "n_entities", [(1, 1), (2, 3)], [(0, 2), (3, 2)]),
    (
        datasets.make_coreference, {"n_train": 1, "n_test": 1, "n_entities": (1, 1)}, "n_mentions",
        [(1, 1), (2, 3)], [(0, 2), (3, 2)],
    ),
    (datasets.make_coreference, {"n_train": 1, "n_test": 1}, "noise", *SHARE),
    (datasets.make_digit_codes, {"n_test": 1}, "n_train", [0], [-1]),
    (datasets.make_digit_codes, {"n_train": 1}, "n_test", [0], [-1]),
    (make_nondominant, {"n": 9}, "k", [2, 5], [1]),
    (make_nondominant, {"k": 3, "p_top": 0.4}, "n", [3, 4], [2]),
    (make_nondominant, {"k": 3, "n": 10}, "p_top", [0.1, 0.8], [0.04, 0.9]),
    (make_nondominant, {"k": 3, "n": 10}, "mu", [-1.0, 0.0], [NAN, INF]),
    (make_nondominant, {"k": 3, "n": 10}, "sigma", *AT_LEAST_0),
    (make_mixed_dominance, {"m": 4, "n_features": 3}, "rho", *SHARE),
    (make_mixed_dominance, {"rho": 0.5, "n_features": 3}, "m", [1], [0]),
    (make_mixed_dominance, {"rho": 0.5, "m": 4}, "n_features", [1], [0]),
    (make_mixed_dominance, {"rho": 0.5, "m": 4, "n_features": 3}, "sigma", *POSITIVE),
    (datasets.make_faces, {"n_images": 1, "size": (8, 8)}, "n_people", [1], [0]),
    (datasets.make_faces, {"n_people": 1, "size": (8, 8)}, "n_images", [1], [0]),
    (datasets.make_faces, {"n_people": 1, "n_images": 1}, "size", [(8, 8)], [(7, 8), (8, 7)]),
    (datasets.make_motif_graphs, {}, "n_graphs", [0, 1], [-1]),
    (datasets.make_motif_graphs, {"n_graphs": 2}, "n_motifs", [0, 1], [-1]),
    (datasets.make_motif_graphs, {"n_graphs": 2}, "n_labels", [0, 1], [-1]),
    (datasets.make_motif_graphs, {"n_graphs": 2, "n_motifs": 1}, "n_nodes", [(4, 4), (5, 6)], [(3, 4), (6, 5)]),
    (
        datasets.make_motif_graphs, {"n_graphs": 2, "n_motifs": 0, "n_nodes": (5, 6)}, "mean_degree",
        [0.0, 4.0], [-1e-9, 4.1],
    ),
    (datasets.make_regions, {}, "n_graphs", [0, 1], [-1]),
    (datasets.make_regions, {"n_graphs": 1}, "n_features", [7], [6]),
    (datasets.make_regions, {"n_graphs": 1}, "n_regions", [(4, 4), (5, 6)], [(3, 4), (6, 5)]),
    (datasets.make_regions, {"n_graphs": 1}, "difficulty", *AT_LEAST_0),
    (datasets.make_regions, {"n_graphs": 1}, "coupling", *AT_LEAST_0),
    (datasets.make_actions, {"n_frames": 20}, "n_sequences", [0, 1], [-1]),
    (datasets.make_actions, {"n_sequences": 1}, "n_frames", [1], [0]),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "n_actions", [2], [0]),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20, "stay": 1.0}, "n_actions", [1, 2], [0]),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "n_persons", [1], [0]),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "difficulty", [1, 4, 5], [0, 6]),
    (
        datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "duration",
        [1.0, (1.0, 1.0), (2.0, 3.0)], [0.9, (0.9, 2.0), (3.0, 2.0)],
    ),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "stay", *SHARE),
    (datasets.make_actions, {"n_sequences": 1, "n_frames": 20}, "drift", [0.0, 0], [-1e-9, NAN, INF, True, "1"]),
    (datasets.make_paragraphs, {}, "n_documents", [0, 1], [-1]),
    (datasets.make_paragraphs, {"n_documents": 1}, "n_paragraphs", [1, (1, 1), (2, 3)], [0, (0, 1), (3, 2)]),
    (datasets.make_paragraphs, {"n_documents": 1}, "n_sentences", [1, (1, 1), (2, 3)], [0, (0, 1), (3, 2)]),
    (datasets.make_paragraphs, {"n_documents": 1}, "n_words", [1, (1, 1), (2, 3)], [0, (0, 1), (3, 2)]),
    (datasets.make_paragraphs, {"n_documents": 1}, "n_topics", [2], [0, 1]),
    (datasets.make_paragraphs, {"n_documents": 1, "n_paragraphs": 1}, "n_topics", [1], [0]),
    (datasets.make_paragraphs, {"n_documents": 1}, "topic_share", *SHARE),
    (datasets.make_paragraphs, {"n_documents": 1}, "cue_share", [*SHARE[0], 1], [*SHARE[1], True, "1"]),
    (datasets.make_paragraphs, {"n_documents": 1}, "vocabulary", [1], [0]),
    (datasets.make_shapes, {"size": 16}, "n_images", [0, 1], [-1]),
    (datasets.make_shapes, {"n_images": 1}, "size", [8], [7]),
    (datasets.make_shapes, {"n_images": 1, "size": 16}, "noise", *AT_LEAST_0),
    (datasets.make_shapes, {"n_images": 1, "size": 16}, "n_shapes", [(0, 0), (1, 2)], [(-1, 2), (2, 1)]),
    (datasets.make_shapes, {"n_images": 1, "size": 16}, "n_kinds", [1, 3], [0, 9]),
    (datasets.make_topic_tree, {"n_documents": 9}, "n_classes", [2, 9], [1]),
    (datasets.make_topic_tree, {"n_classes": 4}, "n_documents", [4, 5], [3]),
    (datasets.make_topic_tree, {"n_classes": 4, "n_documents": 6}, "depth", [2, 3], [1, 4]),
    (datasets.make_topic_tree, {"n_classes": 4, "n_documents": 6}, "length", [1, (2, 2)], [0, (0, 2), (3, 2)]),
    (
        datasets.make_topic_tree, {"n_classes": 4, "n_documents": 6, "depth": 2}, "signal",
        [(0.0, 0.0), (0.5, 0.5)], [(-1e-9, 0.5), (0.5, 0.6), (0.1,), (0.1, 0.1, 0.1), (NAN, 0.1)],
    ),
    (datasets.make_topic_tree, {"n_classes": 4, "n_documents": 6}, "zipf", *AT_LEAST_0),
    (datasets.make_topic_tree, {"n_classes": 4, "n_documents": 6}, "ambiguity", *SHARE),
    (datasets.make_zipf_corpus, {"n_words": 30}, "n_documents", [0, 1], [-1]),
    (datasets.make_zipf_corpus, {"n_documents": 2}, "n_words", [2], [1]),
    (datasets.make_zipf_corpus, {"n_documents": 2, "n_words": 30}, "n_classes", [1], [0]),
    (datasets.make_zipf_corpus, {"n_documents": 2, "n_words": 30}, "length", [1, (2, 2)], [0, (0, 2), (3, 2)]),
    (datasets.make_zipf_corpus, {"n_documents": 2, "n_words": 30}, "separation", *POSITIVE),
    (datasets.make_zipf_corpus, {"n_documents": 2, "n_words": 30}, "mixing", *SHARE),
    (datasets.make_treebank, {"n_rules": 60}, "n", [1], [0]),
    (datasets.make_treebank, {"n": 1, "n_labels": 4, "n_tags": 4}, "n_rules", [30], [3]),
    (datasets.make_treebank, {"n": 1, "n_rules": 60}, "min_length", [1, 10], [0]),
    (datasets.make_treebank, {"n": 1, "n_rules": 60}, "max_length", [4, 5], [0, 3]),
    (datasets.make_treebank, {"n": 1, "n_rules": 60}, "mismatch", *AT_LEAST_0),
    (datasets.make_treebank, {"n": 1, "n_rules": 60, "n_tags": 5}, "n_words", [5, None], [4]),
    (datasets.make_treebank, {"n": 1, "n_rules": 60}, "n_labels", [], [1, 27]),
    (datasets.make_treebank, {"n": 1, "n_rules": 60}, "n_tags", [], [1]),
    (datasets.make_videos, {}, "n_videos", [1], [0]),
    (datasets.make_videos, {"n_videos": 2}, "n_frames", [9, (9, 9)], [0, (0, 9), (9, 8)]),
    (datasets.make_videos, {"n_videos": 2}, "n_features", [1], [0]),
    (datasets.make_videos, {"n_videos": 2}, "n_events", [1], [0]),
    (datasets.make_videos, {"n_videos": 2}, "run", [1], [0]),
    (datasets.make_videos, {"n_videos": 2}, "share", *SHARE),
    (datasets.make_videos, {"n_videos": 2}, "distractors", [0.0, 1], [-1e-9, 1.1, NAN, True, "1"]),
    (datasets.make_videos, {"n_videos": 2}, "separation", *AT_LEAST_0),
    (datasets.make_videos, {"n_videos": 2}, "scene", *AT_LEAST_0),
    (datasets.make_attribute_categories, {"n_categories": 2}, "n_per_category", [1], [0]),
    (datasets.make_attribute_categories, {"n_per_category": 2}, "n_categories", [1], [0]),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "n_attributes", [1], [0]),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "n_features", [1], [0]),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "low", [0.0, 0.8], [-1e-9, 1.1]),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "high", [0.2, 1.0], [0.19, 1.1]),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "separation", *AT_LEAST_0),
    (datasets.make_attribute_categories, {"n_categories": 2, "n_per_category": 2}, "scatter", *AT_LEAST_0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "sizes", "name", "taken", "refused"),
    [pytest.param(*row, id=f"{k}-{row[0].__name__}-{row[2]}") for k, row in enumerate(LIMITS)],
)
def test_limits_of_parameters(
    make: Callable[..., Any], sizes: dict[str, Any], name: str, taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        make(**sizes, **{name: value}, random_state=0)
    for value in refused:
        with pytest.raises((ValueError, TypeError), match=name):
            make(**sizes, **{name: value}, random_state=0)


def test_one_action_has_no_other_to_change_to() -> None:
    with pytest.raises(ValueError, match="n_actions=1 needs stay=1"):
        datasets.make_actions(1, 20, n_actions=1, stay=0.99)
