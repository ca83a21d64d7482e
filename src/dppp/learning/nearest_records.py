"""The records of one shard that are most like a question, by the words that they share.

Used by a teacher whose model is a language model: these records go into its prompt. As in all that
is made from a shard (shards.py), how much a word weighs (TF-IDF) is worked out from this shard
alone. Words and pairs of words are hashed, so no list of words can be empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline

_HASHED = 2**18
_WORD = r"(?u)\w+"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledText:
    """A record as text, and its class."""

    text: str = field(repr=False)
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class NearestRecords:
    """The records of a shard, ready to be searched."""

    records: tuple[LabelledText, ...]
    weights: Pipeline
    vectors: Any = field(repr=False)

    def find(self, questions: Sequence[str], most: int) -> list[list[LabelledText]]:
        """For each question at most this many records; the one most like it comes last."""
        likeness = (self.weights.transform(questions) @ self.vectors.T).toarray()
        places = np.argsort(-likeness, axis=1, kind="stable")[:, :most]
        return [[self.records[place] for place in reversed(row)] for row in places.tolist()]


def search_in(records: Sequence[LabelledText]) -> NearestRecords:
    """What finds records in this shard, which has one or more."""
    words = HashingVectorizer(
        n_features=_HASHED,
        ngram_range=(1, 2),
        token_pattern=_WORD,
        alternate_sign=False,
        norm=None,
    )
    weights = make_pipeline(words, TfidfTransformer(sublinear_tf=True))
    vectors = weights.fit_transform([record.text for record in records])
    return NearestRecords(tuple(records), weights, vectors)
