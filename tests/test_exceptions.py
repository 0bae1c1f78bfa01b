"""Errors and warnings have one home, ``mercer.exceptions``; what a filter names silences it everywhere."""

from __future__ import annotations

import ast
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.model_selection import GridSearchCV

import mercer
import mercer.exceptions
from mercer import exceptions, inference, labeling, learning
from mercer.classification import LinearClassifier

SOURCE = Path(mercer.__file__).parent
# What never leaves its folder: signals between functions, the words of the command line and of the server.
INSIDE = {"cli", "serve", "_nvrtc.py"}


def test_public_errors_and_warnings_are_defined_in_one_file():
    elsewhere = []
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE)
        if own.name == "exceptions.py" or INSIDE & set(own.parts):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = " ".join(ast.unparse(base) for base in node.bases)
                if any(word in bases for word in ("Error", "Warning", "Exception")):
                    elsewhere.append(f"{own}: {node.name}")
    assert elsewhere == []


@pytest.mark.parametrize("name", exceptions.__all__)
def test_each_is_an_exception_with_a_sentence(name):
    kind = getattr(exceptions, name)
    assert issubclass(kind, Exception)
    assert kind.__doc__
    assert (kind.__module__, kind.__qualname__) == ("mercer.exceptions", name)


def test_a_filter_of_scikit_learn_silences_ours_too():
    assert issubclass(learning.ConvergenceWarning, sklearn.exceptions.ConvergenceWarning)
    assert learning.ConvergenceWarning is exceptions.ConvergenceWarning
    assert pickle.loads(pickle.dumps(learning.ConvergenceWarning)) is learning.ConvergenceWarning
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        warnings.warn("stopped early", learning.ConvergenceWarning, stacklevel=1)
    assert caught == []


def test_a_warning_names_the_line_that_called_however_deep_it_was_raised():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = (X[:, 0] > 0).astype(int)
    model = LinearClassifier(max_iter=1, tol=1e-12)
    search = GridSearchCV(model, {"C": [1.0]}, cv=2)  # scikit-learn lies between
    edges = inference.grid_edges((3, 3))
    grid = inference.FactorGraph([2] * 9, unary=rng.random((9, 2)), edges=edges, pairwise=[[1.0, 3.0], [2.0, 1.0]])
    calls = [
        lambda: model.fit(X, y),
        lambda: search.fit(X, y),
        lambda: inference.infer(grid, "bp", max_iter=1),
        lambda: inference.infer(grid, "mean-field", max_iter=1),
        lambda: inference.infer(grid, "dual", task="map", max_iter=1),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        places = {(warning.filename, warning.lineno) for warning in caught}
        assert places == {(__file__, call.__code__.co_firstlineno)}


def test_every_warning_names_its_caller():
    direct = [path.name for path in SOURCE.rglob("*.py") if "warnings.warn(" in path.read_text()]
    assert direct == ["_warnings.py"]


def test_graphs_warn_of_approximations_as_inference_does():
    assert labeling.ApproximateInferenceWarning is inference.ApproximateInferenceWarning


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'ConvergenceWarnings'"):
        _ = exceptions.ConvergenceWarnings
