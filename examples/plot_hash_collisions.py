"""
Columns, collisions and error
=============================

How many columns does hashed text need? Documents of two kinds are drawn from two word distributions with the
frequencies of real text (Zipf), hashed into 2^6 … 2^18 columns, and classified by a linear model. The share of words
lost to sharing follows 1 − (n/N)(1 − (1 − 1/n)^N); the error of the kernel falls with the number of columns, and
signs remove its bias; the classifier is as good as with a vocabulary long before collisions are gone.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from mercer.maps import TextHasher

# %%
# Two kinds of documents: the same words, with frequencies that differ.
rng = np.random.default_rng(0)
n_words, n_documents, length = 10_000, 1500, 100
words = np.array([f"word{i}" for i in range(n_words)], dtype=object)
zipf = 1.0 / np.arange(1, n_words + 1)
labels = rng.integers(0, 2, n_documents)
tilt = np.exp(0.3 * rng.standard_normal((2, n_words)))
p = zipf * tilt / (zipf * tilt).sum(axis=1, keepdims=True)
documents = [" ".join(rng.choice(words, length, p=p[label])) for label in labels]
train, test = slice(0, 1000), slice(1000, None)

# %%
# With a vocabulary: the kernel matrix and the error to compare with.
counts = CountVectorizer()
X = counts.fit_transform(documents)
some = slice(1000, 1100)
exact = (X[some] @ X[some].T).toarray().astype(float)
off_diagonal = ~np.eye(len(exact), dtype=bool)


def error(X_train, X_test):
    model = LogisticRegression(C=0.01, max_iter=200).fit(X_train, labels[train])
    return 1.0 - model.score(X_test, labels[test])


unhashed_error = error(X[train], X[test])

# %%
# With hashing, signed and not. The bias is the mean over 40 seeds; what is left of it with signs is noise.
bits = np.arange(6, 19, 2)
lost, expected, errors, bias = [], [], [], {True: [], False: []}
for n_bits in bits:
    hasher = TextHasher(n_bits=int(n_bits), inverse_size=100_000).fit(documents)
    report = hasher.collision_report()
    lost.append(report.rate)
    expected.append(report.expected_rate)
    errors.append(error(hasher.transform(documents[train]), hasher.transform(documents[test])))
    for signed in (True, False):
        rows = [TextHasher(n_bits=int(n_bits), signed=signed, seed=s).transform(documents[some]) for s in range(40)]
        mean = sum((Z @ Z.T).toarray() for Z in rows) / len(rows)
        bias[signed].append((mean - exact)[off_diagonal].mean() / exact[off_diagonal].mean())

# %%
fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
axes[0].plot(bits, lost, "o", label="observed")
axes[0].plot(bits, expected, label="expected")
axes[0].set(title=f"share of {report.n_names:,} words lost", xlabel="n_bits", ylabel="share")
axes[0].legend()
axes[1].plot(bits, bias[False], "o-", label="without signs")
axes[1].plot(bits, bias[True], "o-", label="with signs")
axes[1].set(title="bias of the kernel", xlabel="n_bits", ylabel="mean difference / mean kernel")
axes[1].set_yscale("symlog", linthresh=0.01)
axes[1].legend()
axes[2].plot(bits, errors, "o-", label="hashed")
axes[2].axhline(unhashed_error, color="black", linestyle=":", label="vocabulary")
axes[2].set(title="error of a linear classifier", xlabel="n_bits", ylim=(0, None))
axes[2].legend()
plt.show()

# %%
# Next: the guide :doc:`hashing text and strings </guide/hashing>`.
