"""
Segments of long signals with a network
=======================================

A signal changes between three regimes that last a while. A convolution sees a few positions at a time and flickers
where noise is strong. A :class:`~mercer.nn.ChainCRF` on top learns that regimes stay, a
:class:`~mercer.nn.SemiMarkovCRF` also how long they last. The example needs PyTorch (the extra ``torch``). See
:doc:`/guide/layers`.
"""

# %%
# Regimes last 25 to 55 positions and follow each other in turn. The signal is their level with noise of twice
# the distance of two levels.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from mercer.nn import ChainCRF, SemiMarkovCRF

torch.set_num_threads(1)
random = np.random.default_rng(0)


def signal(length=400):
    """A noisy signal, its regimes by position, and its segments as (start, stop, regime)."""
    regimes, segments, at, label = np.zeros(length, int), [], 0, int(random.integers(3))
    while at < length:
        stop = min(length, at + int(random.integers(25, 56)))
        regimes[at:stop], label = label, (label + 1) % 3
        segments.append((at, stop, int(regimes[at])))
        at = stop
    return (regimes + 2.0 * random.normal(size=length)).astype(np.float32), regimes, segments


train, test = [signal() for _ in range(24)], [signal() for _ in range(12)]


def tensors(signals):
    """Signals (n, 1, length) and regimes (n, length)."""
    return torch.tensor(np.array([s[0] for s in signals]))[:, None], torch.tensor(np.array([s[1] for s in signals]))


# %%
# The same network three times: a loss for each position, a chain, and segments of up to 60 positions.


class Tagger(nn.Module):
    def __init__(self, top):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.Conv1d(16, 3, 9, padding=4))
        self.top = top

    def forward(self, x):
        return self.features(x).transpose(1, 2)


def fitted(top, steps=80):
    torch.manual_seed(0)
    model = Tagger(top)
    X, y = tensors(train)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        chosen = torch.randperm(len(train))[:6]
        emissions = model(X[chosen])
        if top is None:
            loss = nn.functional.cross_entropy(emissions.flatten(0, 1), y[chosen].flatten())
        elif isinstance(top, ChainCRF):
            loss = top(emissions, y[chosen], reduction="token_mean")
        else:
            loss = top(emissions, [train[i][2] for i in chosen], reduction="token_mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def regimes_of(model, X):
    """The regime of each position."""
    with torch.no_grad():
        emissions = model(X)
    if model.top is None:
        return emissions.argmax(2).numpy()
    labels = model.top.decode(emissions).numpy()
    for row in labels:  # segments: their label goes on until the next one
        for t in range(1, len(row)):
            row[t] = row[t - 1] if row[t] < 0 else row[t]
    return labels


tops = {"positions": None, "ChainCRF": ChainCRF(3), "SemiMarkovCRF": SemiMarkovCRF(3, max_length=60)}
models = {name: fitted(top) for name, top in tops.items()}
X, y = tensors(test)
answers = {name: regimes_of(model, X) for name, model in models.items()}
for name, labels in answers.items():
    changes = (np.diff(labels, axis=1) != 0).sum(axis=1).mean()
    print(f"{name:14s} {100 * (labels == y.numpy()).mean():.1f} % of positions right, {changes:.1f} changes a signal")
print(f"{'truth':14s} {(np.diff(y.numpy(), axis=1) != 0).sum(axis=1).mean():.1f} changes a signal")

# %%
# One test signal.

figure, axes = plt.subplots(5, 1, figsize=(9, 5), sharex=True, height_ratios=[3, 1, 1, 1, 1])
axes[0].plot(X[0, 0].numpy(), lw=0.6)
axes[0].set_ylabel("signal")
for axis, (name, labels) in zip(axes[1:], {"truth": y.numpy(), **answers}.items(), strict=True):
    axis.imshow(labels[:1], aspect="auto", cmap="viridis", vmin=0, vmax=2)
    axis.set_yticks([])
    axis.set_ylabel(name, rotation=0, ha="right", va="center")
axes[-1].set_xlabel("position")
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`layers for PyTorch </guide/layers>`.
