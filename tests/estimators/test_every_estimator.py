"""What holds for every public estimator, found by walking the package."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import inspect
import os
import pickle
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from estimators.cases import ABSTRACT, CASES, Case, public_estimators
from estimators.outputs import equal, fit, fitted, outputs, verbs_of
from mercer._state.registry import MODELS
from mercer.exceptions import OracleError

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.cls.__name__)
SAVED = [case for case in CASES if case.not_saved is None]
every_saved_case = pytest.mark.parametrize("case", SAVED, ids=lambda case: case.cls.__name__)
with_n_jobs = pytest.mark.parametrize(
    "case", [case for case in CASES if "n_jobs" in case.make().get_params()], ids=lambda case: case.cls.__name__
)
EXPLAINED = (ValueError, TypeError)


@dataclass(frozen=True)
class SecondFit:
    """What several tests ask of one fit with the settings and data of `fitted`, and with each setting set by itself."""

    model: Any
    returned: Any
    outputs: Any
    parameters_are_those_given: bool
    inputs_are_those_given: bool


@functools.cache
def second_fit(case: Case) -> SecondFit:
    made = case.make()
    model = clone(made)
    for name, value in made.get_params(deep=False).items():
        model.set_params(**{name: value})
    before, data, again = dict(model.get_params(deep=False)), copy.deepcopy(case.data(0)), case.data(0)
    given = pickle.dumps((data.args, data.kwargs, data.new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned = model.fit(*data.args, **data.kwargs)
    answers, after = outputs(case, model, new=data.new), model.get_params(deep=False)
    return SecondFit(
        model,
        returned,
        answers,
        all(after[name] is before[name] for name in before),
        pickle.dumps((again.args, again.kwargs, again.new)) == given
        or equal((data.args, data.kwargs), (again.args, again.kwargs)),
    )


def copy_of(case: Case) -> Any:
    """A fitted model that a test may change."""
    return copy.deepcopy(fitted(case)[0])


def error_of(run: Callable[[], Any]) -> Exception | None:
    """What a call raises, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run()
        except Exception as error:
            return error
    return None


def explained(error: Exception | None) -> bool:
    return isinstance(error, EXPLAINED) and len(str(error)) > 8


# ------------------------------------------------------------------------------------------------------------ discovery


def test_every_public_estimator_has_a_case() -> None:
    missing = set(public_estimators()) - {case.cls for case in CASES} - set(ABSTRACT)
    assert not missing, f"add a case for {sorted(cls.__name__ for cls in missing)} to tests/estimators/cases.py"


def test_every_public_estimator_can_be_saved_or_says_why_not() -> None:
    unsaved = {case.cls for case in CASES if case.not_saved is not None}
    for cls in set(public_estimators()) - set(ABSTRACT):
        assert (cls.__name__ in MODELS) != (cls in unsaved), cls.__name__


def test_every_kind_of_model_file_has_a_case() -> None:
    tested = {case.cls.__name__ for case in CASES}
    built_not_fitted = {"CountMinSketch", "HashAccumulator", "LinearStringModel"}  # no fit: tested beside their classes
    assert set(MODELS) - tested == built_not_fitted


# --------------------------------------------------------------------------------------------------------- construction


@every_case
def test_the_constructor_only_stores(case: Case) -> None:
    model = case.make()
    for name, value in model.get_params(deep=False).items():
        assert name in vars(model) or hasattr(model, name)
        assert getattr(model, name) is value
    assert not [
        name
        for name in vars(model)
        if name.endswith("_")
        and not name.endswith("__")
        and name in dir(model)
        and name not in model.get_params(deep=False)
    ]


@every_case
def test_a_clone_has_the_same_parameters_and_nothing_learnt(case: Case) -> None:
    model, _ = fitted(case)
    fresh = clone(model)
    assert repr(fresh) == repr(case.make())
    unfitted = {name for name in vars(case.make())}
    assert set(vars(fresh)) == unfitted


@every_case
def test_fit_returns_the_model_and_leaves_its_parameters(case: Case) -> None:
    assert second_fit(case).returned is second_fit(case).model
    assert second_fit(case).parameters_are_those_given


@every_case
def test_set_params_refuses_unknown_names(case: Case) -> None:
    with pytest.raises(ValueError, match="no_such_parameter"):
        case.make().set_params(no_such_parameter=1)


@every_case
def test_fit_does_not_change_its_inputs(case: Case) -> None:
    assert second_fit(case).inputs_are_those_given


@every_case
def test_equal_seeds_give_equal_models_however_the_settings_came(case: Case) -> None:
    assert equal(second_fit(case).outputs, fitted(case)[1])


@every_case
def test_refitting_forgets_the_old_data(case: Case) -> None:
    model = fit(case, seed=1)
    fit(case, seed=0, model=model)
    assert equal(outputs(case, model), fitted(case)[1])


@every_case
def test_an_unfitted_model_says_so(case: Case) -> None:
    model = case.make()
    new = case.data(0).new
    uses = [getattr(model, verb) for verb in verbs_of(case, model)]
    if case.use is not None:
        uses = [functools.partial(case.use, model)]
    errors = [error_of(functools.partial(use, new)) for use in uses]
    if all(error is None for error in errors):
        stateless = equal(outputs(case, model), fitted(case)[1])
        assert stateless, "an unfitted model answered, differently from a fitted one"
    else:
        assert all(isinstance(error, NotFittedError) for error in errors), errors


# --------------------------------------------------------------------------------------------------------------- copies


@every_case
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["deepcopy", "pickle"]
)
def test_copies_answer_the_same(case: Case, copied: Callable[[Any], Any]) -> None:
    model, expected = fitted(case)
    assert equal(outputs(case, copied(model)), expected)
    assert repr(copied(case.make())) == repr(case.make())


@every_saved_case
def test_a_saved_model_answers_the_same(case: Case, tmp_path: Path) -> None:
    model, expected = fitted(case)
    path = tmp_path / "model"
    mercer.save(model, path)
    loaded = case.load(mercer.load(path))
    assert type(loaded) is type(model)
    assert equal(outputs(case, loaded), expected)
    mercer.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@every_saved_case
def test_equal_seeds_give_equal_files(case: Case, tmp_path: Path) -> None:
    mercer.save(fitted(case)[0], tmp_path / "first")
    mercer.save(second_fit(case).model, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.not_saved is not None], ids=lambda case: case.cls.__name__
)
def test_a_model_that_cannot_be_saved_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=case.cls.__name__):
        mercer.save(fitted(case)[0], tmp_path / "model")
    assert not list(tmp_path.iterdir())


@every_saved_case
def test_an_unfitted_model_is_not_saved(case: Case, tmp_path: Path) -> None:
    model = case.make()
    try:
        mercer.save(model, tmp_path / "model")
    except NotFittedError:
        assert not list(tmp_path.iterdir())
    else:  # settings alone
        assert equal(outputs(case, fit(case, model=mercer.load(tmp_path / "model"))), fitted(case)[1])


# -------------------------------------------------------------------------------------------------------------- threads


@with_n_jobs
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_number_of_threads_changes_nothing(case: Case, n_jobs: int) -> None:
    with parallel_config("multiprocessing"):  # forks, where processes are asked for: new ones import for seconds
        model = fit(case, model=case.make().set_params(n_jobs=n_jobs))
        assert equal(outputs(case, model.set_params(n_jobs={1: 1, 2: -1}[n_jobs])), fitted(case)[1])


@with_n_jobs
@pytest.mark.parametrize("n_jobs", [0, "two", 1.5])
def test_a_wrong_number_of_threads_is_refused(case: Case, n_jobs: Any) -> None:
    model = case.make().set_params(n_jobs=n_jobs)
    with pytest.raises(EXPLAINED, match="n_jobs"):
        outputs(case, fit(case, model=model))


@every_case
def test_eight_threads_may_ask_at_once(case: Case) -> None:
    model, expected = fitted(case)
    warnings.simplefilter("ignore")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: outputs(case, model), range(8)))
    assert all(equal(answer, expected) for answer in answers)


# ------------------------------------------------------------------------------------------------------------- failures


class Injected(Exception):
    """Raised in the middle of a fit."""


WRAPPERS = (OracleError,)  # errors of a user's own functions, with the example they failed on


def calls_of(run: Callable[[], Any], stop_at: int | None = None, error: type[BaseException] = Injected) -> int:
    """Run and count calls of the package's functions; raise ``error`` in the one with number ``stop_at``."""
    home = str(Path(mercer.__file__).parent)
    count = 0

    def watch(frame: Any, event: str, argument: Any) -> None:  # of calls alone, since it gives no function for lines
        nonlocal count
        if frame.f_code.co_filename.startswith(home):
            count += 1
            if count == stop_at:
                sys.settrace(None)
                raise error("stopped here")

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@every_case
def test_a_fit_that_fails_leaves_the_old_model(case: Case) -> None:
    model, expected = copy_of(case), fitted(case)[1]
    total = calls_of(lambda: fit(case, seed=1, model=copy.deepcopy(model)))
    # All errors go one way: the places are shared out among them.
    places = (
        (Injected, 1 / 3),
        (Injected, 1),
        (KeyboardInterrupt, 0),
        (KeyboardInterrupt, 2 / 3),
        (MemoryError, 1 / 2),
    )
    for error, share in places:
        place = min(total, max(1, round(share * total)))
        try:
            calls_of(lambda: fit(case, seed=1, model=model), place, error)
        except (error, *WRAPPERS):
            assert equal(outputs(case, model), expected), f"{error.__name__} in call {place} of {total}"
        else:  # Ctrl-C that returns the best model so far, or an error that was handled
            outputs(case, model, seed=1)
            fit(case, seed=0, model=model)
            assert equal(outputs(case, model), expected), f"{error.__name__} in call {place} of {total}"


WRONG = {
    "None": None,
    "a number": 3,
    "an object": object(),
    "None inside": [None, None],
    "empty": [],
    "nested": [[[[]]]],
}


@every_case
def test_inputs_of_another_kind_are_refused_by_fit(case: Case) -> None:
    model, data = copy_of(case), case.data(0)
    for name, wrong in WRONG.items():
        if wrong is None and data.args[0] is None:
            continue  # None is what the estimator takes
        error = error_of(functools.partial(model.fit, wrong, *data.args[1:], **data.kwargs))
        if error is None:
            assert not case.arrays, f"accepted {name}"
            model = copy_of(case)
        else:
            assert explained(error), (name, repr(error))
            assert equal(outputs(case, model), fitted(case)[1]), name


ONLINE = [case for case in CASES if hasattr(case.make(), "partial_fit")]


@pytest.mark.parametrize("case", ONLINE, ids=lambda case: case.cls.__name__)
def test_a_refused_partial_fit_leaves_the_model(case: Case) -> None:
    """An interruption may leave what was learnt until then: these learners write into their weights."""
    model, data = copy_of(case), case.data(0)
    too_few = (data.args[0], *(argument[:-1] for argument in data.args[1:]))
    for args in (*((wrong, *data.args[1:]) for wrong in WRONG.values()), too_few):
        error = error_of(functools.partial(model.partial_fit, *args))
        if error is None:
            model = copy_of(case)
        else:
            assert explained(error), (args[0], repr(error))
            assert equal(outputs(case, model), fitted(case)[1]), args[0]


@every_case
def test_inputs_of_another_kind_are_refused_by_every_verb(case: Case) -> None:
    model, expected = fitted(case)
    if case.use is not None:
        pytest.skip("this case calls its verbs with more than the inputs")
    for verb in (verb for verb in expected if not isinstance(expected[verb], str)):
        for name, wrong in WRONG.items():
            error = error_of(functools.partial(getattr(model, verb), wrong))
            assert error is None or explained(error), f"{verb} of {name}: {error!r}"
    assert equal(outputs(case, model), expected)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.paired and len(case.data(0).args) > 1 and case.data(0).args[0] is not None],
    ids=lambda case: case.cls.__name__,
)
def test_too_few_outputs_are_refused(case: Case) -> None:
    model = copy_of(case)
    data = case.data(0)
    if isinstance(data.args[1], dict):
        pytest.skip("shares by the name of a bag, not one output for each input")
    with pytest.raises(EXPLAINED):
        model.fit(data.args[0], data.args[1][:-1], *data.args[2:], **data.kwargs)
    assert equal(outputs(case, model), fitted(case)[1])


every_array_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.arrays], ids=lambda case: case.cls.__name__
)


def broken_arrays(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in (("NaN", np.nan), ("infinite", np.inf)):
        bad = X.copy()
        bad[1, 0] = value
        yield name, bad
    yield "complex", X + 1j
    yield "strings", np.full(X.shape, "x")
    yield "three-dimensional", X[None]
    yield "one-dimensional", X[0]


@every_array_case
def test_broken_arrays_are_refused_by_fit(case: Case) -> None:
    model = copy_of(case)
    data = case.data(0)
    for name, bad in broken_arrays(data.args[0]):
        if name in case.takes:
            continue
        error = error_of(functools.partial(model.fit, bad, *data.args[1:], **data.kwargs))
        assert explained(error), (name, error)
        assert equal(outputs(case, model), fitted(case)[1]), name


@every_array_case
def test_broken_arrays_are_refused_by_every_verb(case: Case) -> None:
    model, expected = fitted(case)
    new = np.asarray(case.data(0).new)
    for name, bad in (*broken_arrays(new), ("wide", np.c_[new, new]), ("narrow", new[:, :1])):
        for verb in verbs_of(case, model):
            if name in case.takes:
                continue
            error = error_of(functools.partial(getattr(model, verb), bad))
            assert explained(error), (verb, name, error)
    assert equal(outputs(case, model), expected)


# --------------------------------------------------------------------------------------------------------------- memory


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def heap_in_use() -> int:
    """Bytes that malloc has handed out and not got back."""
    report = ctypes.CDLL(None).mallinfo2
    report.restype = _Mallinfo
    state = report()
    return int(state.uordblks + state.hblkhd)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo2 is glibc's")
@every_case
def test_memory_stays_flat_over_fits(case: Case) -> None:
    """200 fits in each round with ``MERCER_MEMORY_FITS=200``; leaks show in a few, as malloc counts every byte."""
    asked = os.environ.get("MERCER_MEMORY_FITS")
    fits = int(asked or "4")

    def round_of(n: int) -> tuple[int, int]:
        for _ in range(n):
            outputs(case, fit(case))
        gc.collect()
        return heap_in_use(), sys.getallocatedblocks()

    gc.freeze()  # what was there before need not be looked through again after each round
    heap, blocks = round_of(2)
    growth = []
    first = fits if asked else 2
    for n in (first, fits, fits, fits):  # a cache that fills once is no leak: the least of the rounds counts
        heap_after, blocks_after = round_of(n)
        growth.append(((heap_after - heap) / n, (blocks_after - blocks) / n))
        if growth[-1][0] < 512 and growth[-1][1] < 24:
            return
        heap, blocks = heap_after, blocks_after
    raise AssertionError(f"bytes of the heap and Python objects more after each fit: {growth}")


# ------------------------------------------------------------------------------------------------------------ interface


def test_shared_parameters_have_one_meaning() -> None:
    """``n_jobs``, ``random_state`` and ``verbose`` default alike everywhere, so that nobody has to look them up."""
    for cls in public_estimators():
        parameters = inspect.signature(cls).parameters
        for name, defaults in (("n_jobs", (None,)), ("verbose", (0, False)), ("random_state", (None, 0))):
            if name in parameters:
                assert parameters[name].default in defaults, f"{cls.__name__}.{name}"
