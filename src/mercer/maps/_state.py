"""What the hashing maps of text and strings share: parameters and kept names in model files, rows as CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from mercer._state.values import pack_strings, unpack_strings
from mercer.maps._inverse import InverseDictionary

__all__ = ["check_dtype", "inverse_from_arrays", "inverse_to_arrays", "params_to_json", "to_csr"]


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """float32 or float64."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
    return found


def to_csr(rows: tuple[np.ndarray, np.ndarray, np.ndarray], n_columns: int) -> csr_matrix:
    """A matrix from (indptr, indices, values) of the compiled core, whose columns ascend without repeats."""
    indptr, indices, values = rows
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    matrix = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns), copy=False)
    matrix.has_canonical_format = True
    return matrix


def params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a map as JSON data."""
    return {**params, "dtype": check_dtype(params["dtype"]).name}


def inverse_to_arrays(inverse: InverseDictionary) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The memory of names for a model file: long lists go to arrays."""
    meta = inverse.to_json()
    seen: dict[str, list[int]] = meta.pop("seen")
    flat = np.array([x for entry in seen.values() for x in entry], np.int64)
    ends = np.cumsum([0, *(len(entry) for entry in seen.values())], dtype=np.int64)
    names = {f"inverse.{key}": array for key, array in pack_strings(list(seen)).items()}
    return meta, {**names, "inverse.entries": flat, "inverse.ends": ends}


def inverse_from_arrays(meta: dict[str, Any], arrays: dict[str, np.ndarray], n_buckets: int) -> InverseDictionary:
    """The inverse of `inverse_to_arrays`."""
    names = unpack_strings({key: arrays[f"inverse.{key}"] for key in ("bytes", "offsets")})
    flat, ends = arrays["inverse.entries"], arrays["inverse.ends"]
    sizes = np.diff(ends) if ends.ndim == 1 and ends.dtype == np.int64 else np.zeros(0, np.int64)
    fits = len(sizes) == len(names) and ends[0] == 0 and ends[-1] == len(flat) and (sizes >= 2).all()
    if flat.ndim != 1 or flat.dtype != np.int64 or not fits or int(meta["n_buckets"]) != n_buckets:
        raise ValueError("the kept names are damaged: their counts and buckets do not fit them")
    inside = np.ones(len(flat), bool)
    inside[ends[:-1]] = False
    if (flat < 0).any() or (flat[inside] >= n_buckets).any():
        raise ValueError(f"the kept names are damaged: a bucket lies outside of 0 .. {n_buckets - 1}")
    seen = {name: flat[a:b].tolist() for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}
    return InverseDictionary.from_json({**meta, "seen": seen})
