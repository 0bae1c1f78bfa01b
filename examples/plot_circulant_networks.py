"""
Networks with circulant layers
==============================

A fully connected layer of width d holds d² numbers. A circulant one holds d: every row of its matrix is the row above,
shifted by one. How much accuracy does that cost, and what would a dense layer with as few numbers do? The example
needs PyTorch (the extra ``torch``). See :class:`mercer.nn.CirculantLinear`.
"""

# %%
# Digits of 8 × 8 pixels, 64 → 64 → 10. "Reduced" is a dense network whose hidden layer is so narrow that it has as many
# numbers as the circulant one.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from mercer.nn import CirculantLinear

torch.set_num_threads(1)
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
X = torch.tensor(digits.data[order] / 16, dtype=torch.float32)
y = torch.tensor(digits.target[order])
test = slice(1200, None)
kinds = {
    "dense": lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
    "circulant": lambda: nn.Sequential(CirculantLinear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
    "reduced dense": lambda: nn.Sequential(nn.Linear(64, 11), nn.ReLU(), nn.Linear(11, 10)),
}


def error(make, rows, seed, steps=200):
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        chosen = torch.randint(0, rows, (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X[chosen]), y[chosen]).backward()
        optimizer.step()
    with torch.no_grad():
        return float((model(X[test]).argmax(dim=1) != y[test]).float().mean()), model


print(f"{'':16}numbers")
for name, make in kinds.items():
    print(f"{name:16}{sum(p.numel() for p in make().parameters()):7,}")

# %%
# Test error by the number of training rows, over three seeds.

sizes = [50, 100, 200, 400, 1200]
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, make), colour in zip(kinds.items(), ("#888888", "#1f4e79", "#c1121f"), strict=True):
    errors = np.array([[100 * error(make, n, seed)[0] for seed in range(3)] for n in sizes])
    ax.errorbar(sizes, errors.mean(axis=1), errors.std(axis=1), color=colour, capsize=3, label=name)
    print(f"{name:16}" + "".join(f"{value:6.1f}" for value in errors.mean(axis=1)))
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.set(xlabel="training rows", ylabel="test error, %", ylim=(0, None))
ax.legend()

# %%
# The matrices that were learnt. That of the circulant layer is one column and its shifts, with a sign for each input.

_, dense = error(kinds["dense"], 1200, 0)
_, circulant = error(kinds["circulant"], 1200, 0)
layer = circulant[0]
panels = {
    "dense: 4,096 numbers": dense[0].weight.detach(),
    "circulant: 64 numbers …": layer.dense_weight() * layer.signs,
    "… and 64 signs": layer.dense_weight(),
}
fig, axes = plt.subplots(1, 3, figsize=(9.2, 3.3), layout="constrained")
for ax, (name, matrix) in zip(axes, panels.items(), strict=True):
    limit = float(matrix.abs().max())
    ax.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set(title=name, xticks=[], yticks=[], xlabel="inputs", ylabel="outputs")
plt.show()

# %%
# Next: the guide :doc:`fast maps </guide/fast-maps>`.
