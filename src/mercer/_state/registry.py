"""Kinds of models and of values in model files, and the functions `save` and `load`.

Reading never runs code from a file: a kind is looked up in the tables of this module, and nowhere else.

Settings of one training run are not part of a model: ``n_jobs``, ``verbose`` and elapsed seconds are not written. Equal
trainings therefore give equal files.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer._state.container import Path, read_file, write_file
from mercer._state.limits import budget, default_budget
from mercer.exceptions import ModelFileError, TooLargeError

__all__ = ["CODECS", "MODELS", "RUN_SETTINGS", "class_of", "kind_of", "load", "save"]

MODELS: dict[str, str] = {
    "Tagger": "mercer.tagging:Tagger",
    "HiddenMarkovModel": "mercer.markov:HiddenMarkovModel",
    "HashedClassifier": "mercer.online:HashedClassifier",
    "HashedRegressor": "mercer.online:HashedRegressor",
    "RelativeMarginSVC": "mercer.classification:RelativeMarginSVC",
    "SupervisedClusterer": "mercer.clustering:SupervisedClusterer",
    "LinearClassifier": "mercer.classification:LinearClassifier",
    "SampledKNN": "mercer.classification:SampledKNN",
    "KMeansMajority": "mercer.classification:KMeansMajority",
    "LabelRanker": "mercer.ranking:LabelRanker",
    "Ranker": "mercer.ranking:Ranker",
    "StructuredPredictor": "mercer.structured:StructuredPredictor",
    "MaximumEntropyDiscrimination": "mercer.structured:MaximumEntropyDiscrimination",
    "HMMClassifier": "mercer.markov:HMMClassifier",
    "Parser": "mercer.parsing:Parser",
    "Aligner": "mercer.alignment:Aligner",
    "CirculantProjection": "mercer.maps:CirculantProjection",
    "CompactClassifier": "mercer.classification:CompactClassifier",
    "CompactNonlinearMap": "mercer.maps:CompactNonlinearMap",
    "FourierFeatures": "mercer.maps:FourierFeatures",
    "PolynomialSketch": "mercer.maps:PolynomialSketch",
    "CorrelationSelector": "mercer.maps:CorrelationSelector",
    "GraphletHasher": "mercer.maps:GraphletHasher",
    "CountMinSketch": "mercer.maps:CountMinSketch",
    "HashAccumulator": "mercer.maps:HashAccumulator",
    "RandomProjection": "mercer.maps:RandomProjection",
    "RecordHasher": "mercer.maps:RecordHasher",
    "CodeClassifier": "mercer.recognition:CodeClassifier",
    "SparseCoder": "mercer.recognition:SparseCoder",
    "ChowLiuTree": "mercer.inference:ChowLiuTree",
    "LatentTree": "mercer.inference:LatentTree",
    "AttributeRetriever": "mercer.attributes:AttributeRetriever",
    "WeakAttributes": "mercer.attributes:WeakAttributes",
    "CategoryAttributes": "mercer.attributes:CategoryAttributes",
    "ZeroShotClassifier": "mercer.attributes:ZeroShotClassifier",
    "SparseRepresentationClassifier": "mercer.recognition:SparseRepresentationClassifier",
    "SignedHashProjection": "mercer.maps:SignedHashProjection",
    "StringHasher": "mercer.maps:StringHasher",
    "Codebook": "mercer.maps:Codebook",
    "TableEncoder": "mercer.maps:TableEncoder",
    "TextHasher": "mercer.maps:TextHasher",
    "Segmenter": "mercer.segmentation:Segmenter",
    "GaussianModel": "mercer.kernels:GaussianModel",
    "GaussianMixtureModel": "mercer.kernels:GaussianMixtureModel",
    "MultinomialModel": "mercer.kernels:MultinomialModel",
    "AdditiveMap": "mercer.kernels:AdditiveMap",
    "FourierMap": "mercer.kernels:FourierMap",
    "Gram": "mercer.kernels:Gram",
    "LinearStringModel": "mercer.kernels:LinearStringModel",
    "NystroemMap": "mercer.kernels:NystroemMap",
    "CCA": "mercer.kernel_methods:CCA",
    "IncompleteCholesky": "mercer.kernel_methods:IncompleteCholesky",
    "KernelizedModel": "mercer.kernel_methods:KernelizedModel",
    "KernelCCA": "mercer.kernel_methods:KernelCCA",
    "KernelDependencyEstimation": "mercer.kernel_methods:KernelDependencyEstimation",
    "KernelFisher": "mercer.kernel_methods:KernelFisher",
    "KernelMeanClassifier": "mercer.kernel_methods:KernelMeanClassifier",
    "KernelNuSVC": "mercer.kernel_methods:KernelNuSVC",
    "KernelOneClass": "mercer.kernel_methods:KernelOneClass",
    "KernelPCA": "mercer.kernel_methods:KernelPCA",
    "KernelRidge": "mercer.kernel_methods:KernelRidge",
    "KernelSVC": "mercer.kernel_methods:KernelSVC",
    "KernelSVR": "mercer.kernel_methods:KernelSVR",
    "LinearProgramSVC": "mercer.kernel_methods:LinearProgramSVC",
    "MultiSetCCA": "mercer.kernel_methods:MultiSetCCA",
    "OnlineKernelClassifier": "mercer.kernel_methods:OnlineKernelClassifier",
    "ParzenWindow": "mercer.kernel_methods:ParzenWindow",
    "PreImage": "mercer.kernel_methods:PreImage",
    "RepresenterEstimator": "mercer.kernel_methods:RepresenterEstimator",
    "JointSVM": "mercer.multilabel:JointSVM",
    "OnlineJointSVM": "mercer.multilabel:OnlineJointSVM",
    "SeparateSVM": "mercer.multilabel:SeparateSVM",
    "CompressedLabels": "mercer.multilabel:CompressedLabels",
    "HashedLabelSets": "mercer.multilabel:HashedLabelSets",
    "NeighborLabels": "mercer.multilabel:NeighborLabels",
    "HomogeneityAnalysis": "mercer.multilabel:HomogeneityAnalysis",
    "DependencyModel": "mercer.multilabel:DependencyModel",
    "KernelHomogeneityAnalysis": "mercer.multilabel:KernelHomogeneityAnalysis",
    "GraphLabeler": "mercer.labeling:GraphLabeler",
    "GridLabeler": "mercer.labeling:GridLabeler",
    "AlternatingProportionSVM": "mercer.proportions:AlternatingProportionSVM",
    "ConvexProportionSVM": "mercer.proportions:ConvexProportionSVM",
    "MultipleInstanceSVM": "mercer.proportions:MultipleInstanceSVM",
    "ICP": "mercer.registration:ICP",
    "KernelRegistration": "mercer.registration:KernelRegistration",
    "FeatureMatching": "mercer.registration:FeatureMatching",
    "SoftAssign": "mercer.registration:SoftAssign",
    "MixtureRegistration": "mercer.registration:MixtureRegistration",
    "CoherentPointDrift": "mercer.registration:CoherentPointDrift",
    "BilinearEmbedding": "mercer.retrieval:BilinearEmbedding",
    "CirculantEmbedding": "mercer.retrieval:CirculantEmbedding",
    "SignProjection": "mercer.retrieval:SignProjection",
    "IterativeQuantization": "mercer.retrieval:IterativeQuantization",
    "SpectralHashing": "mercer.retrieval:SpectralHashing",
    "ShiftInvariantHashing": "mercer.retrieval:ShiftInvariantHashing",
    "InverseCalibration": "mercer.proportions:InverseCalibration",
    "MeanMap": "mercer.proportions:MeanMap",
    "MajorityBag": "mercer.proportions:MajorityBag",
    "ProportionClassifier": "mercer.proportions:ProportionClassifier",
    "VideoEventDetector": "mercer.proportions:VideoEventDetector",
    "AttributeModeler": "mercer.proportions:AttributeModeler",
    "BoltzmannMachine": "mercer.fields:BoltzmannMachine",
    "MultiLabelCRF": "mercer.multilabel:MultiLabelCRF",
    "RBM": "mercer.fields:RBM",
    "ShapeClassifier": "mercer.fields:ShapeClassifier",
    "ShapePartModel": "mercer.fields:ShapePartModel",
    "SpatialLDA": "mercer.fields:SpatialLDA",
}
"""Kind of model in a file → ``module:Class``. Loading imports the names in this table and no others."""

CODECS: dict[str, str] = {
    "constraints": "mercer.structures.constraints",
    "cost": "mercer.structures.costs",
    "graph": "mercer.data.graphs",
    "graph list": "mercer.data.graphs",
    "graphs": "mercer.data.graphs",
    "kernel": "mercer.kernels.base",
    "learner": "mercer.learning.learners",
    "loss": "mercer.learning.losses",
    "output kernel": "mercer.kernels.outputs",
    "score loss": "mercer.kernel_methods.losses",
    "template": "mercer.data.templates",
    "tree": "mercer.data.trees",
    "trees": "mercer.data.trees",
}
"""Kind of value in a file → the module that registers how it is written and read (`values.register`)."""

RUN_SETTINGS = ("n_jobs", "verbose")
"""Parameters that say how this machine trains, not what was learnt: files do not hold them."""


def save(model: Any, path: Path) -> None:
    """Write a fitted model to a file.

    The write is atomic: `path` always holds either the whole new model or its previous content.

    Parameters
    ----------
    model : object
        A model of one of the kinds in ``MODELS``.
    path : str or path-like
        The file to write or to replace.

    Raises
    ------
    TypeError
        If models of this type cannot be saved.
    OSError
        If the file cannot be written (no space left, no permission, no such directory).
    """
    kind = kind_of(model)
    meta, arrays = model.to_state()
    write_file(path, kind, _without_run_settings(meta), arrays)


def load(path: Path, *, max_bytes: int | None = None, mapped: bool = False) -> Any:
    """Read a model that `save` wrote.

    Loading never runs code from the file. Parameters of the computation (``n_jobs``, ``verbose``) get their defaults.

    Parameters
    ----------
    path : str or path-like
        The file to read: a regular file.
    max_bytes : int, optional
        Maximum memory of the model; reading may briefly need twice as much. Default: the larger of 256 MiB and 16 times
        the size of the file. A short file can describe a large model, such as a hashed one with 2^28 weights that are
        mostly 0.
    mapped : bool, default=False
        Map the arrays of the file instead of reading them: processes that load the same file share its memory, if
        the model uses the arrays as stored. The file must not be changed in place while the model lives;
        `save` replaces files and never changes them.

    Returns
    -------
    object
        The model, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a whole model file that this version of mercer reads, or describes a model that is larger
        than ``max_bytes``.
    OSError
        If the file is missing or cannot be opened.
    """
    if max_bytes is not None and (isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1):
        raise ValueError(f"max_bytes must be a positive integer or None, got {max_bytes!r}")
    name = os.fspath(path)
    try:
        size = os.stat(path).st_size
        with budget(default_budget(size) if max_bytes is None else max_bytes):
            file = read_file(path, mapped=mapped)
            if file.kind not in MODELS:
                raise ModelFileError(
                    f"{name} holds a {file.kind!r}, which this version of mercer does not know"
                    f" (it knows {_known_kinds()})"
                )
            cls = class_of(file.kind)
            return _restored(name, file.kind, cls, _without_run_settings(file.meta), file.arrays)
    except MemoryError as err:
        raise ModelFileError(f"{name}: not enough memory for what the file describes{_reason(err)}") from err
    except RecursionError as err:
        raise ModelFileError(f"{name} is not a valid model file: its description is nested too deeply") from err


def _restored(name: str, kind: str, cls: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    try:
        return cls.from_state(meta, arrays)
    except ModelFileError:
        raise
    except KeyError as err:
        raise ModelFileError(f"{name} is not a complete {kind}: {err} is missing") from err
    except TooLargeError as err:
        raise ModelFileError(f"{name} holds a {kind} that is too large: {err}") from err
    except _INVALID as err:
        raise ModelFileError(f"{name} is not a valid {kind}: {err}") from err


_INVALID = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError, NotImplementedError)


def _reason(err: Exception) -> str:
    return f": {err}" if str(err) else ""


def _without_run_settings(meta: Any) -> Any:
    """The description without the parameters that say how a machine trains, in nested models too."""
    if isinstance(meta, Mapping):
        return {
            key: _without_run_settings(
                {k: v for k, v in value.items() if k not in RUN_SETTINGS}
                if key in ("params", "parameters") and isinstance(value, Mapping)
                else value
            )
            for key, value in meta.items()
        }
    return [_without_run_settings(item) for item in meta] if isinstance(meta, list | tuple) else meta


def kind_of(model: Any) -> str:
    cls = type(model)
    if callable(getattr(cls, "to_state", None)):
        for kind, target in MODELS.items():
            # By identity, not by name: a subclass would come back as its parent.
            if target.partition(":")[2] == cls.__name__ and class_of(kind) is cls:
                return kind
    raise TypeError(f"a {cls.__name__} cannot be saved to a model file; these models can: {_known_kinds()}")


def class_of(kind: str) -> Any:
    module, _, name = MODELS[kind].partition(":")
    return getattr(importlib.import_module(module), name)


def _known_kinds() -> str:
    return ", ".join(sorted(MODELS))
