"""Optimisation on matrix manifolds: rotations, rigid motions, orthonormal frames, unit columns.

A manifold gives the operations that descent needs: project onto a tangent space, move along it (retract, exp), carry a
tangent vector to another point (transport). :func:`minimize` uses only these operations.
"""

from mercer.manifolds.minimize import MinimizeResult, check_gradient, minimize
from mercer.manifolds.spaces import SE, SO, Manifold, Oblique, Stiefel

__all__ = ["SE", "SO", "Manifold", "MinimizeResult", "Oblique", "Stiefel", "check_gradient", "minimize"]
