"""Features of text as scikit-learn's analyzers give them, for comparison with the compiled ones."""

from __future__ import annotations

from collections import Counter

from sklearn.feature_extraction.text import CountVectorizer


def features(
    document: str, analyzer: str = "word", ngrams: tuple[int, int] = (1, 1), lowercase: bool = True
) -> Counter:
    """How often each feature stands in a document."""
    analyze = CountVectorizer(analyzer=analyzer, ngram_range=ngrams, lowercase=lowercase).build_analyzer()
    return Counter(analyze(document))
