"""
Graphlet profiles
=================

Graphs of four kinds, told apart by their small subgraphs: random edges, points that see their neighbours, a ring with
shortcuts, and growth by preferential attachment. All have the same number of nodes and nearly the same number of edges,
so that nothing as simple as the density gives them away. See the guide on :doc:`graphs </guide/graphs>`.
"""

# %%
# Four kinds of graphs
# --------------------
# Written down as edge lists, with 60 nodes and about 150 edges each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from mercer.data import Graphs
from mercer.maps import GraphletHasher

N, M = 60, 150
rng = np.random.default_rng(0)
ROWS, COLUMNS = np.triu_indices(N, 1)


def random_edges():
    chosen = rng.choice(len(ROWS), M, replace=False)
    return np.stack([ROWS[chosen], COLUMNS[chosen]], axis=1)


def neighbours_in_the_plane():
    points = rng.random((N, 2))
    distance = ((points[ROWS] - points[COLUMNS]) ** 2).sum(axis=1)
    near = np.argsort(distance)[:M]
    return np.stack([ROWS[near], COLUMNS[near]], axis=1)


def ring_with_shortcuts():
    edges = [(v, (v + step) % N) for v in range(N) for step in (1, 2)]
    edges = [edge if rng.random() > 0.15 else (edge[0], int(rng.integers(N))) for edge in edges]
    return np.array(edges + [tuple(rng.integers(N, size=2)) for _ in range(M - len(edges))])


def preferential_attachment():
    edges, ends = [(0, 1), (0, 2), (1, 2)], [0, 1, 0, 2, 1, 2]
    for v in range(3, N):
        for u in {ends[i] for i in rng.integers(len(ends), size=3)}:
            edges.append((v, u))
            ends += [v, u]
    return np.array(edges)


KINDS = {
    "random edges": random_edges,
    "neighbours in the plane": neighbours_in_the_plane,
    "ring with shortcuts": ring_with_shortcuts,
    "preferential attachment": preferential_attachment,
}
COLOURS = dict(zip(KINDS, ("#1f4e79", "#d1741f", "#3a7d44", "#8e4585"), strict=True))
kinds = np.repeat(list(KINDS), 50)
graphs = Graphs.from_edges([KINDS[kind]() for kind in kinds], [N] * len(kinds), simplify=True)
for kind in KINDS:
    print(f"{kind:24s} {graphs.edge_counts[kinds == kind].mean():.0f} edges")

# %%
# Their profiles
# --------------
# How the connected subgraphs of 3, 4 and 5 nodes are distributed over the types, exactly. Bars show the mean over the
# graphs of a kind, against random edges: what happens by chance is 1.

hasher = GraphletHasher(sizes=(3, 4, 5), normalize=True, n_bits=20, inverse_size=1000).fit(graphs)
profiles = hasher.transform(graphs)
columns = np.unique(profiles.indices)
names = [hasher.inverse(column)[0] for column in columns]
dense = profiles[:, columns].toarray()
print(f"{profiles.nnz} numbers describe {len(graphs)} graphs; {len(names)} types of graphlets")

SHOWN = ["triangle", "path-4", "star-4", "cycle-4", "paw", "diamond", "clique-4", "star-5", "cycle-5", "house"]
chance = dense[kinds == "random edges"].mean(axis=0)
fig, ax = plt.subplots(figsize=(8.4, 4.0), layout="constrained")
for i, kind in enumerate(list(KINDS)[1:]):
    mean = dense[kinds == kind].mean(axis=0)
    ratio = np.array([mean[names.index(name)] / chance[names.index(name)] for name in SHOWN])
    ratio = np.maximum(ratio, 0.1)  # a star of five hardly ever stands in the plane
    ax.bar(np.arange(len(SHOWN)) + 0.27 * (i - 1), ratio - 1, width=0.25, bottom=1, color=COLOURS[kind], label=kind)
ax.axhline(1, color="#222222", linewidth=0.8)
ax.set_yscale("log")
ax.set_ylim(0.09, None)
ax.set_xticks(range(len(SHOWN)), SHOWN, rotation=35, ha="right")
ax.set_ylabel("frequency / frequency by chance")
ax.set_title("Graphlets of three kinds of graphs against random edges", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# A map of graphs
# ---------------
# Scaled profiles, projected onto two directions, and how well a linear model tells the kinds apart in cross-validation.

scaled = MaxAbsScaler().fit_transform(dense)
places = PCA(n_components=2).fit_transform(np.sqrt(scaled))
model = make_pipeline(MaxAbsScaler(), LogisticRegression(C=100.0, max_iter=2000))
right = (cross_val_predict(model, dense, kinds, cv=5) == kinds).mean()
print(f"right in cross-validation: {right:.1%}")

fig, ax = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
for kind, colour in COLOURS.items():
    ax.scatter(*places[kinds == kind].T, s=22, color=colour, alpha=0.75, linewidths=0, label=kind)
ax.set_xticks([])
ax.set_yticks([])
ax.set_title(f"200 graphs by their graphlets ({right:.0%} told apart)", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# How many samples are enough
# ---------------------------
# The distance between sampled and exact frequencies of subgraphs of 5 nodes, for independent draws and for the chain,
# mean over ten seeds. It falls with one over the root of the number of samples; the chain's draws depend on each
# other, so it needs some more.

large = Graphs.from_edges([np.argwhere(np.triu(rng.random((150, 150)) < 0.05, 1))], [150])
counts = [30, 100, 300, 1000, 3000, 10_000, 30_000]
fig, ax = plt.subplots(figsize=(6.0, 3.8), layout="constrained")
for method, colour in (("sample", "#1f4e79"), ("mcmc", "#d1741f")):
    errors = np.zeros(len(counts))
    for seed in range(10):
        exact = GraphletHasher(5, normalize=True, seed=seed).transform(large)
        for i, n in enumerate(counts):
            sampled = GraphletHasher(5, method, n, normalize=True, seed=seed).transform(large)
            errors[i] += abs(sampled - exact).sum() / 2 / 10
    ax.loglog(counts, errors, "o-", markersize=4, color=colour, label=method)
ax.set_xlabel("samples")
ax.set_ylabel("total variation from the exact frequencies")
ax.grid(color="#e6e6e6")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Next: the guide :doc:`graphs </guide/graphs>`.
