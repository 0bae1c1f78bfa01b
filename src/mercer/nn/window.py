"""Emissions of tokens from their context window, the default network of neural taggers.

wide   Σ_fields Σ_offsets W_{field, offset}[x_{t + offset}]        as in a linear model with a window of features
deep   V relu(conv(embeddings of the fields))                      shared by words of similar use
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mercer._validation import check_count

__all__ = ["WindowNetwork"]


class WindowNetwork(nn.Module):
    """Emissions from the fields of the tokens in a window, by individual weights and by embeddings.

    Parameters
    ----------
    sizes : int or sequence of int
        Number of values of each field of a token.
    n_labels : int
    width : int, default=32
        Embedding size of a field; fields with few values have about four times the square root of their number.
    hidden : int, default=96
        Channels of the convolution.
    window : int, default=5
        Window size in tokens, an odd number.
    dropout : float, default=0.3

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mercer.nn import WindowNetwork  # doctest: +SKIP
    >>> WindowNetwork((1000, 40), n_labels=5)(torch.zeros(2, 7, 2, dtype=torch.int64)).shape  # doctest: +SKIP
    torch.Size([2, 7, 5])
    """

    def __init__(
        self,
        sizes: int | Sequence[int],
        n_labels: int,
        width: int = 32,
        hidden: int = 96,
        window: int = 5,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        for name, value in (("n_labels", n_labels), ("width", width), ("hidden", hidden), ("window", window)):
            check_count(name, value)
        if window % 2 == 0:
            raise ValueError(f"window must be odd, got {window}")
        self.n_labels, self.window = n_labels, window
        fields = [check_count("sizes", size) for size in ([sizes] if isinstance(sizes, int) else sizes)]
        widths = [min(width, 2 + int(4 * size**0.5)) for size in fields]
        self.embeddings = nn.ModuleList(nn.Embedding(n, w) for n, w in zip(fields, widths, strict=True))
        tables = [nn.Embedding(n, window * n_labels) for n in fields]
        for table in tables:
            nn.init.zeros_(table.weight)
        self.wide = nn.ModuleList(tables)
        self.mix = nn.Conv1d(sum(widths), hidden, window, padding=window // 2)
        self.drop, self.out = nn.Dropout(dropout), nn.Linear(hidden, n_labels)

    def forward(self, x: Tensor) -> Tensor:
        """Return emissions (batch, time, n_labels) of indices (batch, time, fields), or (batch, time) for one field."""
        if x.dim() == 2:
            x = x[..., None]
        if x.dim() != 3 or x.shape[2] != len(self.embeddings):
            raise ValueError(f"expected (batch, time, {len(self.embeddings)}), got {tuple(x.shape)}")
        embedded = torch.cat([table(x[..., k]) for k, table in enumerate(self.embeddings)], dim=-1)
        mixed = self.mix(self.drop(embedded).transpose(1, 2)).relu().transpose(1, 2)
        out: Tensor = self.out(self.drop(mixed))
        weights = torch.stack([table(x[..., k]) for k, table in enumerate(self.wide)]).sum(0)
        half = self.window // 2
        around = nn.functional.pad(weights.unflatten(-1, (self.window, self.n_labels)), (0, 0, 0, 0, half, half))
        time = x.shape[1]
        for k in range(self.window):
            out = out + around[:, k : k + time, k]
        return out

    def extra_repr(self) -> str:
        """Return the text of ``print(network)``."""
        return f"n_labels={self.n_labels}, window={self.window}"
