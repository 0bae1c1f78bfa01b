"""LinearClassifier keeps scikit-learn's contract."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.classification import LinearClassifier


@pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")
@parametrize_with_checks([LinearClassifier(), LinearClassifier("log"), LinearClassifier("squared-hinge")])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
