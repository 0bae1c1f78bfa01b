"""Point cloud registration: find the transform that aligns two point clouds, and test whether the result can be
trusted."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import UncertainPoseWarning
    from mercer.registration.icp import ICP
    from mercer.registration.kernel import KernelAlignment, KernelRegistration
    from mercer.registration.matching import FeatureMatching
    from mercer.registration.prepared import estimate_normals
    from mercer.registration.registering import register
    from mercer.registration.result import RegistrationResult
    from mercer.registration.soft import CoherentPointDrift, MixtureRegistration, SoftAssign

__all__ = [
    "ICP",
    "CoherentPointDrift",
    "FeatureMatching",
    "KernelAlignment",
    "KernelRegistration",
    "MixtureRegistration",
    "RegistrationResult",
    "SoftAssign",
    "UncertainPoseWarning",
    "estimate_normals",
    "register",
]
__getattr__, __dir__ = on_demand(__name__)
