"""LinearClassifier keeps scikit-learn's contract."""

from __future__ import annotations

import pytest

from mercer.classification import LinearClassifier
from reference.contract import contract


@pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")
@contract([LinearClassifier(), LinearClassifier("log"), LinearClassifier("squared-hinge")])
def test_every_check_of_scikit_learn_passes(checks):
    checks()
