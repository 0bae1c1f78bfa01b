"""Lets tests import the oracles as ``from reference.chains import …``; examples that are drawn are the same each time;
marks slow tests.

``HYPOTHESIS_PROFILE=wandering`` draws others: worth a run now and then.
"""

import contextlib
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MERCER_OFFLINE", "1")  # no test downloads anything but from its own server
# No deadlines: on a busy machine any example may take long.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("wandering", derandomize=False, deadline=None, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
if "HYPOTHESIS_PROFILE" not in os.environ:
    # Examples would also be drawn from the constants in all sources: they would change with every edit, and each worker
    # would parse the whole package before its first test.
    with contextlib.suppress(ImportError):  # another version of Hypothesis
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants

# Files whose tests take long together, and single tests: marked slow, as are all but the first variant of a
# parametrised test.
SLOW = (
    "alignment/test_recursions.py::test_pairs_too_long_for_a_whole_traceback_have_the_same_answers",
    "alignment/test_aligner.py",
    "classification/test_compact.py::test_scikit_learn_finds_nothing_to_object_to",
    "core/test_graphlets.py::test_ctrl_c_ends_long_work",
    "core/test_readers.py",
    "core/test_signals.py::test_ctrl_c_ends_a_call_within_one_pair",
    "fuzz/test_fuzz.py::test_a_bounded_run_finds_nothing[core]",
    "fuzz/test_fuzz.py::test_each_kind_of_failure_is_found_attributed_and_made_smaller",
    "estimators/test_habits.py::test_names_are_there_whatever_is_imported_first",
    "learning/test_checkpoint.py::test_ctrl_c_in_a_terminal_leaves_a_fitted_model_and_a_warning",
    "learning/test_checkpoint.py::test_killed_training_resumes_from_its_checkpoint",
    "proportions/test_selection.py::test_threads_and_runs_change_nothing",
    "datasets/test_proportions.py::test_the_census_has_the_columns_of_a9a",
    "inference/test_methods.py::test_trees_of_ten_nodes_with_four_states_to_ten_digits",
    "inference/test_models.py::test_files_with_wrong_bytes_are_refused_or_read",
    "inference/test_models.py::test_queries_of_random_networks_equal_enumeration",
    "inference/test_sampling.py::test_metropolis_hastings_has_its_transition_matrix",
    "maps/test_compact.py",
    "maps/test_fourier.py::test_maps_of_vectors_need_no_compiled_core_and_no_torch",
    "maps/test_graphlets.py::test_counts_do_not_depend_on_the_numbers_of_nodes",
    "maps/test_projections.py::test_projected_inner_products_are_unbiased",
    "maps/test_records.py::test_another_process_makes_the_same_rows",
    "maps/test_records.py::test_dicts_in_any_order_and_columns_give_the_same_rows",
    "maps/test_strings.py::test_expectation_without_signs",
    "maps/test_text.py::test_columns_are_pinned_in_every_process",
    "maps/test_text.py::test_expectation_over_seeds",
    "online/test_classifier.py",
    "online/test_files.py",
    "parsing/test_charts.py::test_the_cases_are_worth_testing",
    "proportions/test_assignment.py::test_labels_from_before_are_kept_where_greed_does_worse",
    "proportions/test_gradient.py::test_torch_is_asked_for_by_name_and_only_with_a_module",
    "ranking/test_label_ranker.py::test_loss_is_that_of_the_definition_and_its_slope_a_subgradient",
    "cli/",
    "datasets/test_texts.py",
    "learning/test_gradients.py",
    "learning/test_margin_checkpoints.py",
    "learning/test_simulations.py",
    "nn/test_kernels.py",
    "online/test_experiments.py",
    "peers/",
    "proportions/test_public_data.py",
    "proportions/test_video.py",
    "retrieval/test_gpu_codes.py",
    "test_benchmarks.py",
    "test_collection.py",
    "test_docs.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    seen = set()
    for item in items:
        file, _, variant = item.nodeid.partition("::")
        place = f"{file.removeprefix('tests/')}::{variant.partition('[')[0]}"
        if file.startswith("tests/") and (place in seen or place.startswith(SLOW)):
            item.add_marker(pytest.mark.slow)
        seen.add(place)
