"""The source text of sign-circulant codes on a GPU: one kernel, which reads x once and writes bits once.

    b = sign(F⁻¹(F(r) ∘ F(D x)))

A block of threads keeps its transform in shared memory. With *pairs* it takes two rows at once, z = x₁ + i x₂: r is
real, so the real part of r ⊛ z belongs to the first row and the imaginary part to the second. Longer rows, of which two
do not fit, are taken alone as N = d/2 complex numbers z_j = x_{2j} + i x_{2j+1}; with the transforms E of the even and
G of the odd entries of r, and w_k = e^{−2πik/N},

    Y_k = (E_k + V_k) Z_k + B_k conj(Z_{N−k}),    V = (i/2) (1 − w) G,    B = (i/2) (1 + w) G.

The forward transform decimates in frequency and leaves its result in the order of reversed digits, the inverse one
takes that order: every pass works in place and nothing is ever put in order. A pass is a discrete transform of up to 32
points in registers, written out here for every length; `mercer.retrieval._cuda` compiles and starts it.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Plan", "plan_for", "roots", "sign_words", "source", "spectrum", "takes_ballots"]

_PRIMES = (2, 3, 5, 7, 11, 13)
_LARGEST = 32  # points of a pass
_SHARED = 227 * 1024  # bytes of shared memory that a block may have on the chips of the last generations
_SMALL_TABLE = 1024  # roots that stay in the nearest cache
_CHAIN = 8  # powers of a root are made by at most this many multiplications from one that was stored


class Plan(NamedTuple):
    """How the codes of rows of one length are computed."""

    d: int
    pairs: bool
    radices: tuple[int, ...]
    threads: int
    pad: int  # one word is left free after 2^pad of them, so that passes do not meet in one bank; 0: none

    @property
    def n(self) -> int:
        """Complex numbers in shared memory."""
        return self.d if self.pairs else self.d // 2

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return 8 * (self.n + (self.n >> self.pad if self.pad else 0) + 1)

    @property
    def blocks(self) -> int:
        """Blocks that a processor holds at once."""
        threads = 512 if max(self.radices) > 16 else 1024  # beyond that registers do not hold a pass
        return max(1, min(_SHARED // (self.shared_bytes + 1024), threads // self.threads))


@functools.lru_cache(maxsize=64)
def plan_for(d: int) -> Plan | None:
    """The plan for rows of ``d`` numbers; None where they do not fit or d has a large prime factor."""
    for pairs in (True, False):
        n = d if pairs else d // 2
        if n < 64 or (not pairs and d % 2):
            continue
        radices = _radices(n)
        if radices is None:
            return None
        pad = 5 if radices[-1] == 32 else 4 if radices[-1] % 2 == 0 else 0
        made = Plan(d, pairs, radices, 0, pad)
        if made.shared_bytes <= _SHARED - 64:
            return made._replace(threads=_threads(n))
    return None


def _threads(n: int) -> int:
    """What was fastest on an H200: small transforms share a processor, large ones need all of its registers."""
    return 128 if n <= 4096 else 256 if n <= 12000 else 512


def _radices(n: int) -> tuple[int, ...] | None:
    """Few factors of about equal size.

    The last one is odd if there is an odd one, else the largest: its pass then meets no bank of memory twice. Small
    transforms, of which many share a processor, do better with factors that need few registers.
    """
    left = n
    for prime in _PRIMES:
        while left % prime == 0:
            left //= prime
    if left > 1:
        return None
    limit = 8 if n < 4096 and n & (n - 1) == 0 else _LARGEST
    count = max(2, math.ceil(math.log(n) / math.log(limit) - 1e-9))
    while True:
        splits = _split(n, count, limit)
        if splits and n & (n - 1) == 0:
            return (max(splits) if limit == _LARGEST else min(splits, key=sum))[::-1]
        if splits:
            best = min(splits, key=lambda factors: (max(factors), sum(factors)))
            return tuple([f for f in best if f % 2 == 0] + [f for f in best if f % 2])
        count += 1


@functools.lru_cache(maxsize=4096)
def _split(n: int, count: int, limit: int) -> tuple[tuple[int, ...], ...]:
    """Ways of writing n as ``count`` descending factors of at most ``limit``."""
    if count == 1:
        return ((n,),) if 2 <= n <= limit else ()
    return tuple(
        (f, *rest)
        for f in range(limit, 1, -1)
        if n % f == 0
        for rest in _split(n // f, count - 1, limit)
        if rest[0] <= f
    )


# ---------------------------------------------------------------------------------------------------- source text

Number = tuple[str, str]


class Writer:
    """Straight-line code over pairs of real variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def new(self, re: str, im: str) -> Number:
        name = f"t{self.count}"
        self.count += 1
        self.lines.append(f"float {name}r = {re}, {name}i = {im};")
        return f"{name}r", f"{name}i"

    def add(self, a: Number, b: Number) -> Number:
        return self.new(f"{a[0]} + {b[0]}", f"{a[1]} + {b[1]}")

    def sub(self, a: Number, b: Number) -> Number:
        return self.new(f"{a[0]} - {b[0]}", f"{a[1]} - {b[1]}")

    def mul(self, a: Number, b: Number, conjugate: bool = False) -> Number:
        """a b, or a conj(b)."""
        s, t = ("+", "-") if conjugate else ("-", "+")
        return self.new(f"{a[0]} * {b[0]} {s} {a[1]} * {b[1]}", f"{a[1]} * {b[0]} {t} {a[0]} * {b[1]}")

    def times(self, a: Number, w: complex) -> Number:
        """a times a constant; quarter turns only rename."""
        if abs(w - 1) < 1e-12:
            return a
        if abs(w + 1) < 1e-12:
            return f"(-{a[0]})", f"(-{a[1]})"
        if abs(w - 1j) < 1e-12:
            return f"(-{a[1]})", a[0]
        if abs(w + 1j) < 1e-12:
            return a[1], f"(-{a[0]})"
        c, s = _literal(w.real), _literal(w.imag)
        if abs(abs(w.real) - abs(w.imag)) < 1e-12:  # an eighth turn
            total, differ = f"({a[0]} + {a[1]})", f"({a[0]} - {a[1]})"
            re = f"{c} * {differ}" if w.real * w.imag > 0 else f"{c} * {total}"
            im = f"{c} * {total}" if w.real * w.imag > 0 else f"{c} * ({a[1]} - {a[0]})"
            return self.new(re, im)
        return self.new(f"{a[0]} * {c} - {a[1]} * {s}", f"{a[0]} * {s} + {a[1]} * {c}")

    def transform(self, x: Sequence[Number], sign: int) -> list[Number]:
        """X_k = Σ_j x_j e^{sign · 2πi jk/n}, in natural order."""
        n = len(x)
        if n == 1:
            return list(x)
        if n == 2:
            return [self.add(x[0], x[1]), self.sub(x[0], x[1])]
        n1 = 4 if n % 4 == 0 and n > 4 else next(p for p in _PRIMES if n % p == 0)
        if n1 == n:
            return self._prime(x, sign)
        n2 = n // n1
        columns = [self.transform([x[j2 + n2 * j1] for j1 in range(n1)], sign) for j2 in range(n2)]
        out: list[Number] = [("", "")] * n
        for k1 in range(n1):
            row = [self.times(columns[j2][k1], cmath.exp(sign * 2j * cmath.pi * j2 * k1 / n)) for j2 in range(n2)]
            for k2, value in enumerate(self.transform(row, sign)):
                out[k1 + n1 * k2] = value
        return out

    def evaluate(self, x: Sequence[Number], sign: int, powers: dict[int, Number]) -> list[Number]:
        """X_k = Σ_j x_j z_k^j at z_k = c e^{sign · 2πi k/n}, n a power of two, from the powers c, c², c⁴, … given.

        A polynomial is e(z²) + z o(z²), of its even and its odd coefficients: three products and sums in one give a
        part of both values at z and −z, so that factors of the numbers cost next to nothing.
        """
        points: dict[tuple[int, int], Number] = {}

        def point(power: int, k: int, n: int) -> Number:
            if n > 2 and k >= n // 4:
                return self.times(point(power, k - n // 4, n), sign * 1j)
            if (power, k) not in points:
                points[power, k] = self.times(powers[power], cmath.exp(sign * 2j * cmath.pi * k / n))
            return points[power, k]

        def values(x: Sequence[Number], power: int) -> list[Number]:
            n = len(x)
            if n == 1:
                return list(x)
            even, odd = values(x[::2], 2 * power), values(x[1::2], 2 * power)
            out = list(x)
            for k, (e, o) in enumerate(zip(even, odd, strict=True)):
                z = point(power, k, n)
                re, im = f"{e[0]} + {z[0]} * {o[0]} - {z[1]} * {o[1]}", f"{e[1]} + {z[0]} * {o[1]} + {z[1]} * {o[0]}"
                out[k] = self.new(re, im)
                out[k + n // 2] = self.new(*(f"fmaf(2.0f, {e[i]}, -{out[k][i]})" for i in (0, 1)))
            return out

        return values(x, 1)

    def _prime(self, x: Sequence[Number], sign: int) -> list[Number]:
        p, half = len(x), len(x) // 2
        plus = [self.add(x[j], x[p - j]) for j in range(1, half + 1)]
        minus = [self.sub(x[j], x[p - j]) for j in range(1, half + 1)]
        out = [x[0]] * p
        out[0] = self.new(" + ".join([x[0][0], *(t[0] for t in plus)]), " + ".join([x[0][1], *(t[1] for t in plus)]))
        for k in range(1, half + 1):
            cosines = [_literal(math.cos(2 * math.pi * j * k / p)) for j in range(1, half + 1)]
            sines = [_literal(sign * math.sin(2 * math.pi * j * k / p)) for j in range(1, half + 1)]
            a = self.new(*(_sum([x[0][i]], cosines, [t[i] for t in plus]) for i in (0, 1)))
            b = self.new(*(_sum([], sines, [u[i] for u in minus]) for i in (0, 1)))
            out[k] = self.new(f"{a[0]} - {b[1]}", f"{a[1]} + {b[0]}")  # a + i b
            out[p - k] = self.new(f"{a[0]} + {b[1]}", f"{a[1]} - {b[0]}")
        return out


def _sum(first: list[str], factors: list[str], values: list[str]) -> str:
    return " + ".join([*first, *(f"{f} * {v}" for f, v in zip(factors, values, strict=True))])


def _literal(value: float) -> str:
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


_HEAD = """\
// What is read once must not push out of the nearest cache what is read again and again.
template <int PLACE>
__device__ __forceinline__ unsigned once(const unsigned* p) {{
  unsigned v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1 + %2];" : "=r"(v) : "l"(p), "n"(4 * PLACE));
  return v;
}}
#define N {n}
#define T {threads}
#define BLOCKS {blocks}
#define AT(i) {at}
struct Arguments {{
  const unsigned* x; long long stride; long long rows; const unsigned* signs; const float2* spectrum;
  const float2* roots; const int2* mirrored; unsigned char* out; long long out_stride;
  int n_bits; int ahead; int* broken;
}};
"""


def source(plan: Plan, ballots: bool = False) -> str:
    """The CUDA source of the kernel ``circulant_codes`` for a plan.

    With ``ballots`` a warp writes its 32 bits as one word: for what `takes_ballots` allows.
    """
    n, radices, pad = plan.n, plan.radices, plan.pad
    at = f"((i) + ((i) >> {pad}))" if pad else "(i)"
    parts = [_HEAD.format(n=n, threads=plan.threads, blocks=plan.blocks, at=at)]
    stages, shapes, length, root = [], [], n, 0
    for r in radices:
        shapes.append((r, length, length // r, root))
        root += root_count(r, length // r)
        length //= r
    stages.append(_first(plan, *shapes[0]))
    stages += [forward(*shape) for shape in shapes[1:-1]]
    if plan.pairs:
        stages.append(_middle(*shapes[-1]))
    else:
        stages += [forward(*shapes[-1]), _mirrored(), backward(*shapes[-1])]
    stages += [backward(*shape) for shape in shapes[-2:0:-1]]
    stages.append(_last(plan.pairs, *shapes[0], ballots=ballots))
    parts += [stage.replace("STAGE", f"stage{number}") for number, stage in enumerate(stages)]
    parts.append(_kernel(plan, ballots))
    return "\n".join(parts)


def _powers(r: int, m: int) -> list[int]:
    """Which powers of the roots of a pass are stored, for every offset: all, if that is little; else what is needed."""
    if m == 1:
        return []
    if m * (r - 1) <= _SMALL_TABLE:
        return list(range(1, r))
    return sorted({*range(_CHAIN, r, _CHAIN), *(2**k for k in range(r.bit_length()) if 2**k < r)})


def root_count(r: int, m: int) -> int:
    return m * len(_powers(r, m))


def roots(plan: Plan) -> np.ndarray:
    """The roots e^{−2πi c o/L} of all passes, in the order that `source` reads them."""
    length, parts = plan.n, [np.zeros(1, np.complex128)]
    for r in plan.radices:
        m = length // r
        if m > 1:
            o = np.arange(m)
            parts += [np.exp(-2j * np.pi * ((c * o) % length) / length) for c in _powers(r, m)]
        length = m
    return np.concatenate(parts)[1:] if len(parts) > 1 else parts[0]


def _roots(w: Writer, r: int, m: int, root: int) -> Callable[[int], Number]:
    """Loads a stored power of the root of a pass."""
    stored = _powers(r, m)
    w.lines.append("const float2* const roots = g.roots + o;")

    def load(c: int) -> Number:
        w.lines.append(f"const float2 w{w.count} = __ldg(roots + {root + stored.index(c) * m});")
        w.count += 1
        return f"w{w.count - 1}.x", f"w{w.count - 1}.y"

    return load


def twiddled(w: Writer, values: list[Number], r: int, m: int, root: int, conjugate: bool) -> list[Number]:
    """values[q] times the root to the power q, from chains of products where not all are stored."""
    if m == 1:
        return values
    out, load, stored = list(values), _roots(w, r, m, root), len(_powers(r, m))
    if stored == r - 1:
        return [values[0], *(w.mul(values[q], load(q), conjugate) for q in range(1, r))]
    base = load(1)
    for start in range(0, r, _CHAIN):
        power = base if start == 0 else load(start)
        for q in range(max(start, 1), min(start + _CHAIN, r)):
            if q > max(start, 1):
                power = w.mul(power, base)
            out[q] = w.mul(values[q], power, conjugate)
    return out


def inverted(w: Writer, r: int, m: int, root: int) -> list[Number]:
    """The inverse transform of numbers in shared memory, each times its conjugate root."""
    values = loaded(w, r, m)
    if m == 1 or r & (r - 1):
        return w.transform(twiddled(w, values, r, m, root, True), 1)
    load = _roots(w, r, m, root)
    powers = {2**k: load(2**k) for k in range(r.bit_length() - 1)}
    return w.evaluate(values, 1, {k: (re, f"(-{im})") for k, (re, im) in powers.items()})


def loop(body: Sequence[str], r: int, length: int, m: int) -> str:
    place = f"const int o = b % {m}, a = (b / {m}) * {length} + o;" if m > 1 else f"const int o = 0, a = b * {length};"
    inside = "\n    ".join([place, "(void)o;", *body])
    return f"  for (; b < end; b += step) {{\n    {inside}\n  }}\n"


SIGNATURE = "__device__ __forceinline__ void STAGE(const Arguments& g, float2* s, int b, const int end, const int step"


def loaded(w: Writer, r: int, m: int) -> list[Number]:
    for j in range(r):
        w.lines.append(f"const float2 v{j} = s[AT(a + {j * m})];")
    return [(f"v{j}.x", f"v{j}.y") for j in range(r)]


def stored(w: Writer, values: Sequence[Number], m: int) -> None:
    for q, value in enumerate(values):
        w.lines.append(f"s[AT(a + {q * m})] = make_float2({value[0]}, {value[1]});")


def _first(plan: Plan, r: int, length: int, m: int, root: int) -> str:
    """From global memory; ``seen`` gets the bits that occur in each row, and whether a sum of numbers is not finite."""
    w = Writer()
    if plan.pairs:
        w.lines.append("const unsigned u = __ldg(g.signs + b), *const xa = x + a, *const ya = y + a;")
        flips = ("u", "u")
    else:
        w.lines.append("const uint2 u = __ldg(reinterpret_cast<const uint2*>(g.signs) + b);")
        w.lines.append("const uint2* const xa = reinterpret_cast<const uint2*>(x) + a;")
        flips = ("u.x", "u.y")
    for j in range(r):
        if plan.pairs:
            w.lines.append(f"const unsigned p{j} = once<{j * m}>(xa), q{j} = once<{j * m}>(ya);")
        else:
            w.lines.append(f"const uint2 l{j} = __ldg(xa + {j * m}); const unsigned p{j} = l{j}.x, q{j} = l{j}.y;")
        for part, v, u in zip("ri", "pq", flips, strict=True):
            w.lines.append(f"const float v{j}{part} = __uint_as_float({v}{j} ^ ({u} << {31 - j} & 0x80000000u));")
    for k, v in enumerate("pq"):
        w.lines.append(f"seen[{k}] |= {' | '.join(f'{v}{j}' for j in range(r))};")
    values = w.transform([(f"v{j}r", f"v{j}i") for j in range(r)], -1)
    total = " + ".join(f"fabsf({part})" for part in values[0])  # of all numbers: not finite if one of them is not
    w.lines.append(f"if (!({total} <= {_literal(float(np.finfo(np.float32).max))})) seen[2] = 1u;")
    stored(w, twiddled(w, values, r, m, root, False), m)
    head = f"{SIGNATURE}, const unsigned* x, const unsigned* y, unsigned* seen) {{\n"
    return head + loop(w.lines, r, length, m) + "}\n"


def forward(r: int, length: int, m: int, root: int) -> str:
    w = Writer()
    values = w.transform(loaded(w, r, m), -1)
    stored(w, twiddled(w, values, r, m, root, False), m)
    return f"{SIGNATURE}) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _middle(r: int, length: int, m: int, root: int) -> str:
    """The last forward pass, the product with the spectrum and the first backward pass share their numbers."""
    w = Writer()
    values = w.transform(loaded(w, r, m), -1)
    product = []
    for q, value in enumerate(values):
        w.lines.append(f"const float2 h{q} = __ldg(g.spectrum + b + {q} * (N / {r}));")
        product.append(w.mul(value, (f"h{q}.x", f"h{q}.y")))
    stored(w, w.transform(product, 1), m)
    return f"{SIGNATURE}) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _mirrored() -> str:
    """Y from Z where a row stands alone: numbers k and N − k together."""
    return (
        f"{SIGNATURE}) {{\n"
        "  for (; b < end; b += step) {\n"
        "    const int2 at = __ldg(g.mirrored + b);\n"
        "    const float2 p = s[AT(at.x)], q = s[AT(at.y)];\n"
        "    const float2 u = __ldg(g.spectrum + 3 * b), v = __ldg(g.spectrum + 3 * b + 1);\n"
        "    const float2 c = __ldg(g.spectrum + 3 * b + 2);\n"
        "    const float ar = u.x + v.x, ai = u.y + v.y, br = u.x - v.x, bi = v.y - u.y;\n"
        "    s[AT(at.x)] = make_float2(\n"
        "        ar * p.x - ai * p.y + c.x * q.x + c.y * q.y, ar * p.y + ai * p.x + c.y * q.x - c.x * q.y);\n"
        "    if (at.x != at.y)\n"
        "      s[AT(at.y)] = make_float2(\n"
        "          br * q.x - bi * q.y - c.x * p.x + c.y * p.y, br * q.y + bi * q.x + c.y * p.x + c.x * p.y);\n"
        "  }\n}\n"
    )


def backward(r: int, length: int, m: int, root: int) -> str:
    w = Writer()
    stored(w, inverted(w, r, m, root), m)
    return f"{SIGNATURE}) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _last(pairs: bool, r: int, length: int, m: int, root: int, ballots: bool) -> str:
    if not ballots:
        return backward(r, length, m, root)
    w = Writer()
    values = inverted(w, r, m, root)
    w.lines.append("unsigned first = 0, second = 0; const int lane = threadIdx.x & 31;")
    for q, value in enumerate(values):  # lane q keeps the word of output q
        w.lines.append(f"{{ const unsigned f = __ballot_sync(~0u, {value[0]} >= 0.0f);")
        w.lines.append(f"const unsigned h = __ballot_sync(~0u, {value[1]} >= 0.0f);")
        w.lines.append(f"if (lane == {q}) first = f, second = h; }}")
    w.lines += [
        "if (found & 1) first = ~0u;",
        "if (found & 2) second = ~0u;",
        f"const int i = a - lane + lane * {m};",
    ]
    if pairs:
        w.lines += [
            f"if (lane < {r} && i < g.n_bits) {{",
            "  *reinterpret_cast<unsigned*>(out + (i >> 3)) = __byte_perm(__brev(first), 0, 0x0123);",
            "  unsigned* other = reinterpret_cast<unsigned*>(out + g.out_stride + (i >> 3));",
            "  if (two) *other = __byte_perm(__brev(second), 0, 0x0123);",
            "}",
        ]
    else:  # the bits of the two parts alternate
        w.lines += [
            f"if (lane < {r} && 2 * i < g.n_bits) {{",
            "  const unsigned low = spread(first & 0xffffu) | spread(second & 0xffffu) << 1;",
            "  const unsigned high = spread(first >> 16) | spread(second >> 16) << 1;",
            "  unsigned* to = reinterpret_cast<unsigned*>(out + (i >> 2));",
            "  to[0] = __byte_perm(__brev(low), 0, 0x0123);",
            "  if (2 * i + 32 < g.n_bits) to[1] = __byte_perm(__brev(high), 0, 0x0123);",
            "}",
        ]
    head = f"{'' if pairs else _SPREAD}{SIGNATURE}, unsigned char* out, const bool two, const int found) {{\n"
    return head + loop(w.lines, r, length, m) + "}\n"


_SPREAD = """\
__device__ __forceinline__ unsigned spread(unsigned v) {  // bit i to bit 2i
  v = (v | v << 8) & 0x00ff00ffu;
  v = (v | v << 4) & 0x0f0f0f0fu;
  v = (v | v << 2) & 0x33333333u;
  return (v | v << 1) & 0x55555555u;
}
"""

_PACK = {
    True: """\
__device__ __forceinline__ void pack(
    const Arguments& g, float2* s, const int tid, unsigned char* out, const bool two, const int found) {
  for (int q = tid; q < (g.n_bits + 7) / 8; q += T) {
    unsigned a = 0, b = 0;
    for (int j = 0; j < 8; ++j)
      if (8 * q + j < g.n_bits) {
        const float2 v = s[AT(8 * q + j)];
        a |= (v.x >= 0.0f || (found & 1) ? 128u : 0u) >> j;
        b |= (v.y >= 0.0f || (found & 2) ? 128u : 0u) >> j;
      }
    out[q] = (unsigned char)a;
    if (two) out[g.out_stride + q] = (unsigned char)b;
  }
}
""",
    False: """\
__device__ __forceinline__ void pack(
    const Arguments& g, float2* s, const int tid, unsigned char* out, const bool, const int found) {
  for (int q = tid; q < (g.n_bits + 7) / 8; q += T) {
    unsigned a = 0;
    for (int j = 0; j < 4; ++j)
      if (8 * q + 2 * j < g.n_bits) {
        const float2 v = s[AT(4 * q + j)];
        a |= (v.x >= 0.0f || (found & 3) ? 128u : 0u) >> (2 * j);
        if (8 * q + 2 * j + 1 < g.n_bits) a |= (v.y >= 0.0f || (found & 3) ? 64u : 0u) >> (2 * j);
      }
    out[q] = (unsigned char)a;
  }
}
""",
}


def _kernel(plan: Plan, ballots: bool) -> str:
    """The passes in order.

    After the first one the numbers fall into parts of N / r₁ that do not meet before the last one (but where mirrored):
    each part belongs to one warp, which need not wait for others.
    """
    rows, first = 2 if plan.pairs else 1, plan.radices[0]
    widths = [plan.n // first // r for r in plan.radices[1:]]  # transforms of a part in each pass
    lines = [] if ballots else [_PACK[plan.pairs]]
    lines += [
        'extern "C" __global__ void __launch_bounds__(T, BLOCKS) circulant_codes(const Arguments g) {',
        "  extern __shared__ float2 s[];",
        "  const int tid = threadIdx.x;",
        f"  const long long row = (long long)blockIdx.x * {rows}, later = row + (long long)g.ahead * {rows};",
        f"  const bool two = {'row + 1 < g.rows' if plan.pairs else 'false'};",
        "  const unsigned* x = g.x + row * g.stride;",
        "  unsigned char* out = g.out + row * g.out_stride;",
        "  unsigned seen[3] = {0u, 0u, 0u};",
        f"  stage0(g, s, tid, N / {first}, T, x, two ? x + g.stride : x, seen);",
        f"  for (int k = 0; k < {rows}; ++k)  // rows of a later block come nearer while this one computes",
        "    if (later + k < g.rows)",
        f"      for (int i = 32 * tid; i < {plan.d}; i += 32 * T)",
        '        asm volatile("prefetch.global.L2 [%0];" ::"l"(g.x + (later + k) * g.stride + i));',
        "  int found = __syncthreads_or(seen[2]) ? 4 : 0;",
    ]
    if plan.pairs:
        lines.append("  found |= (__syncthreads_or(seen[0] << 1) ? 0 : 1) | (__syncthreads_or(seen[1] << 1) ? 0 : 2);")
    else:
        lines.append("  found |= __syncthreads_or((seen[0] | seen[1]) << 1) ? 0 : 3;")
    lines.append("  if ((found & 4) && tid == 0) atomicExch(g.broken, 1);")
    inner = len(widths)
    if plan.pairs:
        lines += _by_warps(first, list(zip(range(1, 2 * inner), [*widths, *widths[-2::-1]], strict=True)))
    else:
        lines += _by_warps(first, list(zip(range(1, inner + 1), widths, strict=True)))
        lines += [f"  stage{inner + 1}(g, s, tid, N / 2 + 1, T);", "  __syncthreads();"]
        lines += _by_warps(first, list(zip(range(inner + 2, 2 * inner + 2), widths[::-1], strict=True)))
    last = 2 * inner if plan.pairs else 2 * inner + 2
    lines.append(f"  stage{last}(g, s, tid, N / {first}, T{', out, two, found' if ballots else ''});")
    if not ballots:
        lines += ["  __syncthreads();", "  pack(g, s, tid, out, two, found);"]
    return "\n".join([*lines, "}"])


def _by_warps(parts: int, stages: Sequence[tuple[int, int]]) -> list[str]:
    """Passes (number, transforms of a part) that each warp does for parts of its own."""
    inside = []
    for number, width in stages:
        inside.append(f"    stage{number}(g, s, part * {width} + lane, part * {width} + {width}, 32);")
        inside.append("    __syncwarp();")
    head = f"  for (int part = tid / 32, lane = tid & 31; part < {parts}; part += T / 32) {{"
    return [head, *inside, "  }", "  __syncthreads();"]


def takes_ballots(plan: Plan, n_bits: int, out_stride: int) -> bool:
    """Whether warps may write words: 32 neighbouring bits then always belong to one warp."""
    return (plan.n // plan.radices[0]) % 32 == 0 and n_bits % 32 == 0 and out_stride % 4 == 0


# ---------------------------------------------------------------------------------------------------- tables


def stored_frequencies(plan: Plan) -> np.ndarray:
    """The frequency at each place of shared memory after the forward passes."""
    place, frequency, step = np.arange(plan.n), np.zeros(plan.n, np.int64), 1
    length = plan.n
    for r in plan.radices:
        length //= r
        digit, place = place // length, place % length
        frequency += step * digit
        step *= r
    return frequency


def spectrum(plan: Plan, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel multiplies with, and the places of mirrored numbers (none with pairs)."""
    order = stored_frequencies(plan)
    if plan.pairs:
        last = plan.radices[-1]
        transform = (
            np.fft.fft(r)[order].reshape(-1, last).T
        )  # numbers of one thread lie apart, those of a warp together
        return np.ascontiguousarray(transform).ravel(), np.zeros((1, 2), np.int32)
    n = plan.n
    E, G, w = np.fft.fft(r[::2]), np.fft.fft(r[1::2]), np.exp(-2j * np.pi * np.arange(n) / n)
    k = np.arange(n // 2 + 1)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    k = k[np.argsort(place[k])]  # threads beside each other then meet different banks
    terms = np.stack([E[k], 0.5j * (1 - w[k]) * G[k], 0.5j * (1 + w[k]) * G[k]], axis=1)
    return terms.ravel(), np.stack([place[k], place[(n - k) % n]], axis=1)


def sign_words(plan: Plan, signs: np.ndarray) -> np.ndarray:
    """Signs as bits, 1 where negative: a word for each transform of the first pass, its numbers from the lowest bit on.

    Without pairs a word of the real parts, then one of the imaginary ones.
    """
    negative = (signs < 0).reshape(plan.radices[0], -1, 1 if plan.pairs else 2)
    weights = np.left_shift(1, np.arange(plan.radices[0], dtype=np.int64))
    return np.einsum("jbp,j->bp", negative, weights).astype(np.uint32).ravel()
