"""Homogeneity analysis beside the multiple correspondence analysis of prince."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.multilabel import HomogeneityAnalysis

prince = pytest.importorskip("prince", reason="prince: not installed")
pd = pytest.importorskip("pandas")


def test_eigenvalues_and_scores_are_those_of_prince():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (200, 6))
    codes[:, 1] = np.where(rng.random(200) < 0.7, codes[:, 0], codes[:, 1])
    codes[:, 3] = np.where(rng.random(200) < 0.5, codes[:, 2], codes[:, 3])
    frame = pd.DataFrame({f"c{j}": [f"v{v}" for v in codes[:, j]] for j in range(6)})
    ours = HomogeneityAnalysis(3).fit(frame)
    theirs = prince.MCA(n_components=3, n_iter=50, random_state=0).fit(frame)
    assert np.allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-8)
    rows = theirs.row_coordinates(frame).to_numpy()
    for j in range(3):
        a, b = ours.object_scores_[:, j], rows[:, j]
        assert abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b) > 1 - 1e-8
