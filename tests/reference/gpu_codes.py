"""The kernel of sign-circulant codes on the CPU: its passes are compiled by the C++ compiler and run one after another.

The passes are those of the GPU, letter for letter; threads, barriers and words written by warps are not tried here.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np

from mercer.retrieval.circulant_source import Plan, roots, sign_words, source, spectrum
from reference.compiled import library

_HEAD = r"""
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#define __device__
#define __forceinline__ inline
#define __ldg(p) (*(p))
using std::max;
struct float2 { float x, y; };
struct uint2 { unsigned x, y; };
struct int2 { int x, y; };
static inline float2 make_float2(float a, float b) { return {a, b}; }
static inline float __uint_as_float(unsigned u) { float f; std::memcpy(&f, &u, 4); return f; }
template <int PLACE> inline unsigned once(const unsigned* p) { return p[PLACE]; }
"""


def codes_by_passes(plan: Plan, x: np.ndarray, r: np.ndarray, signs: np.ndarray, n_bits: int) -> tuple:
    """(packed codes, whether a row was found broken) of float32 rows."""
    text = re.sub(r"// What is read once.*?return v;\n}\n", "", source(plan), flags=re.DOTALL)
    first = plan.radices[0]
    inner = [plan.n // radix for radix in plan.radices[1:]]
    ends = inner + inner[-2::-1] if plan.pairs else [*inner, plan.n // 2 + 1, *inner[::-1]]
    calls = [f"stage{k + 1}(g, s, 0, {end}, 1);" for k, end in enumerate([*ends, plan.n // first])]
    zero = "(seen[0] << 1 ? 0 : 1) | (seen[1] << 1 ? 0 : 2)" if plan.pairs else "((seen[0] | seen[1]) << 1 ? 0 : 3)"
    main = f"""
extern "C" void run(const Arguments& g) {{
  std::vector<float2> memory(2 * N + 64);
  float2* s = memory.data();
  for (long long row = 0; row < g.rows; row += {2 if plan.pairs else 1}) {{
    const bool two = {"row + 1 < g.rows" if plan.pairs else "false"};
    unsigned seen[3] = {{0u, 0u, 0u}};
    const unsigned* x = g.x + row * g.stride;
    stage0(g, s, 0, N / {first}, 1, x, two ? x + g.stride : x, seen);
    const int found = {zero};
    if (seen[2]) *g.broken = 1;
    {" ".join(calls)}
    for (int t = 0; t < T; ++t) pack(g, s, t, g.out + row * g.out_stride, two, found);
  }}
}}
"""
    run = library(_HEAD + text[: text.index('extern "C" __global__')] + main).run
    values, mirrored = spectrum(plan, r)
    out, broken = np.zeros((len(x), -(-n_bits // 8)), np.uint8), np.zeros(1, np.int32)
    waves = [values.astype(np.complex64), roots(plan).astype(np.complex64)]
    tables = [sign_words(plan, signs), *waves, mirrored.astype(np.int32)]

    class Arguments(ctypes.Structure):
        _fields_ = (
            ("x", ctypes.c_void_p), ("stride", ctypes.c_longlong), ("rows", ctypes.c_longlong),
            *((name, ctypes.c_void_p) for name in ("signs", "spectrum", "roots", "mirrored", "out")),
            ("out_stride", ctypes.c_longlong), ("n_bits", ctypes.c_int), ("ahead", ctypes.c_int),
            ("broken", ctypes.c_void_p),
        )  # fmt: skip

    places = [table.ctypes.data for table in [np.ascontiguousarray(t) for t in tables]]
    arguments = Arguments(
        x.ctypes.data, x.shape[1], len(x), *places, out.ctypes.data, out.strides[0], n_bits, 0, broken.ctypes.data
    )
    run(ctypes.byref(arguments))
    return out, bool(broken[0])
