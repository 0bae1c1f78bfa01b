"""Source code of the kernels of circulant layers for NVRTC: FFT, product and inverse FFT in one kernel.

    forward    y = F⁻¹(F(r) ∘ F(D x)) + b                  keeps Z = F(D x) for the backward pass
    backward   D ∇_x = F⁻¹(conj F(r) ∘ F(δ))               and sums conj(Z) ∘ F(δ) of its rows, F(∇_r)

A block keeps two rows in shared memory as z = x₁ + i x₂, with the passes of `retrieval.circulant_source`. Since r is
real, the two rows separate again. The real part of the transform of conj(Z) ∘ F(δ) is the sum for both rows. Each block
processes several rows and sums into its own memory, so results are deterministic.
"""

from __future__ import annotations

from mercer.retrieval.circulant_source import (
    SIGNATURE,
    Plan,
    Writer,
    backward,
    forward,
    inverted,
    loaded,
    loop,
    root_count,
    stored,
    twiddled,
)

__all__ = ["layer_source"]

_HEAD = """\
#define N {n}
#define T {threads}
#define BLOCKS {blocks}
#define AT(i) {at}
struct Arguments {{
  const float *x, *signs, *bias; const float2 *spectrum, *roots; float2 *kept, *partial; float* out; long long rows;
}};
"""


def layer_source(plan: Plan, width: int, out: int, name: str) -> str:
    """Return the source of ``forward`` or ``backward`` from rows of ``width`` numbers to rows of ``out`` numbers."""
    n, pad, back = plan.n, plan.pad, name == "backward"
    at = f"((i) + ((i) >> {pad}))" if pad else "(i)"
    shapes, length, root = [], n, 0
    for r in plan.radices:
        shapes.append((r, length, length // r, root))
        root += root_count(r, length // r)
        length //= r
    inner = [forward(*shape) for shape in shapes[1:-1]]
    inner += [_product(*shapes[-1], back=back), *(backward(*shape) for shape in shapes[-2:0:-1])]
    stages = [_first(*shapes[0], width, back), *inner, _last(*shapes[0], out, back)]
    texts = [stage.replace("STAGE", f"stage{number}") for number, stage in enumerate(stages)]
    head = _HEAD.format(n=n, threads=plan.threads, blocks=plan.blocks, at=at)
    return "\n".join([head, *texts, _kernel(plan, width, out, name)])


def _first(r: int, length: int, m: int, root: int, width: int, back: bool) -> str:
    """Load two rows from global memory with zero padding; the forward pass multiplies by the signs."""
    w = Writer()
    for j in range(r):
        i = f"b + {j * m}"
        inside = f"{i} < {width}" if width < length else "true"
        w.lines.append(f"float p{j} = 0.0f, q{j} = 0.0f;")
        w.lines.append(f"if ({inside}) {{ p{j} = __ldg(x + {i}); if (two) q{j} = __ldg(x + {width} + {i});")
        if not back:
            w.lines.append(f"if (g.signs) {{ const float u = __ldg(g.signs + {i}); p{j} *= u; q{j} *= u; }}")
        w.lines.append("}")
    values = w.transform([(f"p{j}", f"q{j}") for j in range(r)], -1)
    stored(w, twiddled(w, values, r, m, root, False), m)
    return f"{SIGNATURE}, const float* x, const bool two) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _product(r: int, length: int, m: int, root: int, back: bool) -> str:
    """Fuse the last forward pass, the product with the spectrum, its stored part, and the first backward pass."""
    w = Writer()
    values = w.transform(loaded(w, r, m), -1)
    product = []
    for q, value in enumerate(values):
        place = f"b + {q} * (N / {r})"
        w.lines.append(f"const float2 h{q} = __ldg(g.spectrum + {place});")
        if back:
            w.lines += [
                "if (g.partial) {",
                f"  const float2 z = __ldg(g.kept + pair * N + {place});",
                f"  const float re = z.x * {value[0]} + z.y * {value[1]}, im = z.x * {value[1]} - z.y * {value[0]};",
                "  float2 sum = make_float2(re, im);",
                f"  float2* const to = g.partial + (long long)blockIdx.x * N + {place};",
                "  if (pair >= gridDim.x) { const float2 old = *to; sum.x += old.x; sum.y += old.y; }",
                "  *to = sum;",
                "}",
            ]
        else:
            w.lines.append(f"if (g.kept) g.kept[pair * N + {place}] = make_float2({value[0]}, {value[1]});")
        product.append(w.mul(value, (f"h{q}.x", f"h{q}.y"), back))
    stored(w, w.transform(product, 1), m)
    return f"{SIGNATURE}, const long long pair) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _last(r: int, length: int, m: int, root: int, out: int, back: bool) -> str:
    """Write the last pass to global memory: add the bias (forward), multiply by the signs (backward)."""
    w = Writer()
    for q, (re, im) in enumerate(inverted(w, r, m, root)):
        i = f"b + {q * m}"
        inside = f"{i} < {out}" if out < length else "true"
        given, factor = ("g.signs", "1.0f") if back else ("g.bias", "0.0f")
        sign = "*" if back else "+"
        w.lines.append(f"if ({inside}) {{ const float u = {given} ? __ldg({given} + {i}) : {factor};")
        w.lines.append(f"  y[{i}] = {re} {sign} u; if (two) y[{out} + {i}] = {im} {sign} u; }}")
    return f"{SIGNATURE}, float* y, const bool two) {{\n" + loop(w.lines, r, length, m) + "}\n"


def _kernel(plan: Plan, width: int, out: int, name: str) -> str:
    """Return the passes in order; after the first pass each warp has its own parts, as in the kernel of codes."""
    first = plan.radices[0]
    widths = [plan.n // first // r for r in plan.radices[1:]]
    middle, counts = len(widths), [*widths, *widths[-2::-1]]
    lines = [
        f'extern "C" __global__ void __launch_bounds__(T, BLOCKS) {name}(const Arguments g) {{',
        "  extern __shared__ float2 s[];",
        "  const int tid = threadIdx.x;",
        "  for (long long pair = blockIdx.x; 2 * pair < g.rows; pair += gridDim.x) {",
        "    const bool two = 2 * pair + 1 < g.rows;",
        f"    stage0(g, s, tid, N / {first}, T, g.x + 2 * pair * {width}, two);",
        "    __syncthreads();",
        f"    for (int part = tid / 32, lane = tid & 31; part < {first}; part += T / 32) {{",
    ]
    for number, count in enumerate(counts, 1):
        more = ", pair" if number == middle else ""
        lines.append(f"      stage{number}(g, s, part * {count} + lane, part * {count} + {count}, 32{more});")
        lines.append("      __syncwarp();")
    lines += [
        "    }",
        "    __syncthreads();",
        f"    stage{len(counts) + 1}(g, s, tid, N / {first}, T, g.out + 2 * pair * {out}, two);",
        "    __syncthreads();",
        "  }",
        "}",
    ]
    return "\n".join(lines)
