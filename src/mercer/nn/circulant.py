"""Circulant layers: y = R D x + b with a circulant matrix R and a diagonal D of random signs.

    R x = F⁻¹(F r ∘ F x)                                     O(n log n) time, n numbers
    ∇_r = F⁻¹(Σ_batch conj(F D x) ∘ F δ),   ∇_x = D F⁻¹(conj(F r) ∘ F δ),   δ = ∂L/∂(R D x)

n is the larger of both widths: inputs are padded with zeros, and outputs (and δ) are truncated. On a GPU, custom
kernels process float32 rows if n has no prime factor above 13 and fits into shared memory (28,000). All other rows use
the FFT of torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["CirculantLinear"]


class _CirculantProduct(torch.autograd.Function):
    """Compute circ(r) x, truncated to k outputs; gradients by FFT, with one inverse transform for r per batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, r: Tensor, k: int) -> Tensor:
        n = r.shape[0]
        spectrum, kernel = torch.fft.rfft(x, n=n), torch.fft.rfft(r)
        ctx.save_for_backward(spectrum, kernel)
        ctx.n, ctx.width = n, x.shape[-1]
        return torch.fft.irfft(spectrum * kernel, n=n)[..., :k]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        spectrum, kernel = ctx.saved_tensors
        delta = torch.fft.rfft(gradients[0], n=ctx.n)
        of_x = of_r = None
        if ctx.needs_input_grad[0]:
            of_x = torch.fft.irfft(kernel.conj() * delta, n=ctx.n)[..., : ctx.width]
        if ctx.needs_input_grad[1]:
            product = spectrum.conj() * delta
            summed = product.reshape(-1, product.shape[-1]).sum(dim=0)
            of_r = torch.fft.irfft(summed, n=ctx.n)
        return of_x, of_r, None


class CirculantLinear(nn.Module):
    """A fully connected layer with a circulant matrix, a drop-in replacement for ``torch.nn.Linear``.

    It has max(in_features, out_features) weights instead of their product, and takes O(n log n) time.

    Parameters
    ----------
    in_features, out_features : int
        Widths of input and output.
    bias : bool, default=True
        Whether a bias is added.
    sign_flip : bool, default=True
        Whether to multiply inputs by fixed random signs. Without signs, circulant matrices barely distinguish shifts of
        an input.
    trainable : bool, default=True
        False keeps the random initial matrix.
    device, dtype : optional
        As for ``torch.nn.Linear``; float32 or float64. Half precision inputs are computed in float32.
    generator : torch.Generator, optional
        Generator of the random numbers.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mercer.nn import CirculantLinear  # doctest: +SKIP
    >>> layer = CirculantLinear(784, 512)  # doctest: +SKIP
    >>> layer(torch.randn(32, 784)).shape, sum(p.numel() for p in layer.parameters())  # doctest: +SKIP
    (torch.Size([32, 512]), 1296)
    """

    signs: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        sign_flip: bool = True,
        trainable: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        kind = dtype or torch.get_default_dtype()
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {kind}")
        self.in_features, self.out_features = in_features, out_features
        n = max(in_features, out_features)
        drawn = torch.randn(n, generator=generator, dtype=kind) / math.sqrt(in_features)
        self.weight = nn.Parameter(drawn.to(device), requires_grad=trainable)
        self.bias = nn.Parameter(torch.zeros(out_features, dtype=kind, device=device)) if bias else None
        signs = None
        if sign_flip:
            signs = (2 * torch.randint(0, 2, (in_features,), generator=generator) - 1).to(device=device, dtype=kind)
        self.register_buffer("signs", signs)

    def forward(self, x: Tensor) -> Tensor:
        """Return R D x + b for the last axis of x."""
        if x.shape[-1] != self.in_features:
            raise ValueError(f"expected inputs of width {self.in_features}, got {tuple(x.shape)}")
        if x.device != self.weight.device:
            raise ValueError(f"the layer is on {self.weight.device}, the input on {x.device}: move one of them")
        kind = x.dtype
        if kind not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            raise ValueError(f"expected floating-point inputs, got {kind}")
        z = x.to(self.weight.dtype)
        if x.device.type == "cuda" and x.numel():
            from mercer.nn._circulant_cuda import fused

            fused_outputs = fused(z, self.weight, self.bias, self.signs, self.out_features)
            if fused_outputs is not None:
                return fused_outputs.to(kind)
        if self.signs is not None:
            z = z * self.signs
        if x.numel() == 0:  # some FFT libraries refuse empty batches
            y = z.new_zeros((*x.shape[:-1], self.out_features)) + 0.0 * self.weight.sum()
        else:
            y = _CirculantProduct.apply(z, self.weight, self.out_features)
        if self.bias is not None:
            y = y + self.bias
        return y.to(kind)

    def dense_weight(self) -> Tensor:
        """Return the equivalent dense matrix R D, (out_features, in_features)."""
        n = self.weight.shape[0]
        places = (torch.arange(self.out_features)[:, None] - torch.arange(self.in_features)[None, :]) % n
        dense = self.weight.detach()[places.to(self.weight.device)]
        return dense if self.signs is None else dense * self.signs

    @classmethod
    def from_linear(cls, layer: nn.Linear, sign_flip: bool = True, **options: Any) -> CirculantLinear:
        """Return the circulant layer nearest to a dense layer for randomly drawn signs, by means over diagonals."""
        made = cls(
            layer.in_features, layer.out_features, bias=layer.bias is not None, sign_flip=sign_flip,
            dtype=layer.weight.dtype, device=layer.weight.device, **options,
        )  # fmt: skip
        n = made.weight.shape[0]
        rows = torch.arange(layer.out_features, device=layer.weight.device)[:, None]
        columns = torch.arange(layer.in_features, device=layer.weight.device)[None, :]
        places = ((rows - columns) % n).reshape(-1)
        with torch.no_grad():
            dense = layer.weight if made.signs is None else layer.weight * made.signs
            sums = torch.zeros(n, dtype=dense.dtype, device=dense.device).index_add_(0, places, dense.reshape(-1))
            counts = torch.bincount(places, minlength=n).clamp(min=1).to(dense.dtype)
            made.weight.copy_(sums / counts)
            if made.bias is not None and layer.bias is not None:
                made.bias.copy_(layer.bias)
        return made

    def extra_repr(self) -> str:
        """Return the text of ``print(layer)``."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"sign_flip={self.signs is not None}, trainable={self.weight.requires_grad}"
        )
