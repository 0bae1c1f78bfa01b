"""Arrays for the dense maps: NumPy, torch or any library of the array API. The output is of the same library.

Maps draw and keep their parameters in NumPy. `Copies` copies them once for each library, dtype and device of the input.
The compiled loops take NumPy arrays only. Without the compiled core, the maps compute in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import array_api_compat
import numpy as np
import scipy.fft
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mercer._validation import check_sparse

__all__ = [
    "Copies",
    "as_rows",
    "as_tensor",
    "by_rows",
    "compiled",
    "fft_of",
    "is_foreign",
    "is_numpy",
    "is_tensor",
    "on_device_of",
    "on_processor",
    "row_blocks",
    "to_numpy",
    "with_less_memory",
]

# Beside the maps, not in them: `transform` leaves a map as it was.
_COPIES: WeakKeyDictionary[Any, dict[tuple[str, ...], dict[str, Any]]] = WeakKeyDictionary()
BLOCK_BYTES = 1 << 20  # of intermediate rows: they stay in the processor's cache


@lru_cache(maxsize=1)
def compiled() -> Any:
    """Return the compiled loops of maps and codes, or None where the core is not built."""
    try:
        from mercer import _core
    except ImportError:
        return None
    return _core.maps


def is_numpy(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def as_rows(estimator: Any, X: Any, reset: bool, sparse_hint: str | None = None, *, finite: bool = True) -> Any:
    """Return X as a finite float32 or float64 matrix of the same library; integers become float64.

    ``sparse_hint`` says what to do with a sparse matrix; None lets it pass as CSR. ``finite=False`` skips the check of
    a NumPy array for NaN and infinity; the caller then finds them in its own result.
    """
    if sp.issparse(X) and sparse_hint is not None:
        raise TypeError(f"X is a sparse matrix, and {type(estimator).__name__} takes dense rows: {sparse_hint}")
    if not is_foreign(X):
        X = check_sparse("X", X)
        types = [np.float64, np.float32]
        checked = finite or not isinstance(X, np.ndarray)
        return validate_data(estimator, X, accept_sparse="csr", dtype=types, reset=reset, ensure_all_finite=checked)
    if is_tensor(X) and str(X.layout) != "torch.strided":
        hint = sparse_hint or "use X.to_dense(), or a sparse matrix of scipy"
        raise TypeError(f"X is a sparse tensor, and {type(estimator).__name__} takes dense ones: {hint}")
    xp = array_api_compat.array_namespace(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array with {X.ndim} dimensions: rows are examples")
    if min(X.shape) == 0:
        raise ValueError(f"X must have at least one row and one column, got shape {tuple(X.shape)}")
    if X.dtype not in (xp.float32, xp.float64):
        if not xp.isdtype(X.dtype, ("bool", "integral")):
            raise ValueError(f"X must be of float32, float64 or whole numbers, got {X.dtype}")
        X = xp.astype(X, xp.float64)
    if not _all_finite(xp, X):
        raise ValueError("X contains NaN or infinity")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    return X


def _all_finite(xp: Any, X: Any) -> bool:
    """Whether there is no NaN and no infinity; of tensors in one pass, since both pass through extrema."""
    extrema = X.detach().aminmax() if is_tensor(X) else (X,)
    return all(bool(xp.all(xp.isfinite(part))) for part in extrema)


def is_tensor(X: Any) -> bool:
    """Return whether X is a torch tensor, without importing torch."""
    return type(X).__module__.split(".")[0] == "torch" and hasattr(X, "detach")


def on_processor(X: Any) -> bool:
    """Return whether the compiled loops can take the tensor X: NumPy can see its memory, and it needs no gradient."""
    return is_tensor(X) and X.device.type == "cpu" and not X.requires_grad


def as_tensor(array: np.ndarray) -> Any:
    """Return a tensor that shares the memory of a NumPy array."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def is_foreign(X: Any) -> bool:
    """Return whether X is an array of the array API other than NumPy's."""
    return not is_numpy(X) and not sp.issparse(X) and array_api_compat.is_array_api_obj(X)


def to_numpy(x: Any) -> np.ndarray:
    """Return the values of any array, on any device, as a NumPy array."""
    return np.asarray(array_api_compat.to_device(x, "cpu").detach() if hasattr(x, "detach") else x)


def on_device_of(X: Any, array: np.ndarray) -> Any:
    """Return a NumPy array as an array of the library of X, on the device of X."""
    if is_numpy(X):
        return array
    xp = array_api_compat.array_namespace(X)
    return xp.asarray(np.ascontiguousarray(array), device=array_api_compat.device(X))


def fft_of(xp: Any) -> Any:
    """Return rfft and irfft functions that keep float32; those of NumPy do so only since version 2."""
    return scipy.fft if array_api_compat.is_numpy_namespace(xp) else xp.fft


def row_blocks(n: int, width: int) -> list[slice]:
    """Return ranges of rows whose intermediate values, ``width`` per row, fit into the cache."""
    step = max(8, BLOCK_BYTES // (8 * max(width, 1)))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def by_rows(work: Callable[[Any], Any], X: Any, width: int, most: int | None = None) -> Any:
    """Compute work(X) in batches of rows that fit into the memory of X's device, with ``width`` numbers per row."""
    step = max(1, min(most or X.shape[0], _room(X) // (8 * max(width, 1))))
    return with_less_memory(lambda rows: _in_steps(work, X, rows), step, X)


def with_less_memory(work: Callable[[int], Any], step: int, X: Any) -> Any:
    """Call work(step), with smaller steps when memory runs out. If step 1 fails, the error advises smaller batches."""
    while True:
        try:
            return work(step)
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
        # Beyond the handler: the error held on to the tensors of its frames.
        _release(X)
        if step == 1:
            break
        step = max(1, step // 4)
    n = X.shape[0]
    raise MemoryError(
        f"out of memory on {array_api_compat.device(X)} with {n} rows, even one at a time with its output: pass them "
        f"in batches, for example of {max(1, n // 8)} rows"
    )


def _in_steps(work: Callable[[Any], Any], X: Any, step: int) -> Any:
    n = X.shape[0]
    if step >= n:
        return work(X)
    xp = array_api_compat.array_namespace(X)
    out = None
    for start in range(0, n, step):
        part = work(X[start : start + step, ...])
        if out is None:
            out = xp.empty((n, *part.shape[1:]), dtype=part.dtype, device=array_api_compat.device(part))
        out[start : start + step, ...] = part
    return out


def _out_of_memory(error: RuntimeError) -> bool:
    """Whether torch, or a library of Fourier transforms or products beneath it, has found no memory."""
    return type(error).__name__ == "OutOfMemoryError" or "ALLOC_FAILED" in str(error)


def _release(X: Any) -> None:
    if is_tensor(X) and X.device.type == "cuda":
        import torch

        torch.cuda.empty_cache()


def _room(X: Any) -> int:
    """Bytes for intermediate values: half of what is free on a GPU, otherwise 256 MiB."""
    if not is_tensor(X) or X.device.type != "cuda":
        return 1 << 28
    import torch

    held = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
    return (torch.cuda.mem_get_info(X.device)[0] + held) // 2


class Copies:
    """The fitted parameters of a map as arrays of the library, dtype and device of the input, made once for each."""

    def _like(self, x: Any, arrays: Callable[[], dict[str, np.ndarray]]) -> dict[str, Any]:
        """Copies of the arrays that a method of the map gives; floating-point ones in the type of x."""
        xp = array_api_compat.array_namespace(x)
        place = (arrays.__name__, xp.__name__, str(x.dtype), str(array_api_compat.device(x)))
        kept = _COPIES.setdefault(self, {})
        if place not in kept:
            made = {}
            for name, array in arrays().items():
                if is_numpy(x):
                    made[name] = np.ascontiguousarray(array, x.dtype if array.dtype.kind == "f" else None)
                    continue
                copy = xp.asarray(np.ascontiguousarray(array), device=array_api_compat.device(x))
                made[name] = xp.astype(copy, x.dtype) if array.dtype.kind == "f" else copy
            kept[place] = made
        return kept[place]

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What is made from the fitted numbers once, and not saved with them."""
        kept = _COPIES.setdefault(self, {})
        if (name,) not in kept:
            kept[(name,)] = make()
        return kept[(name,)]

    def _forget_copies(self) -> None:
        _COPIES.pop(self, None)
