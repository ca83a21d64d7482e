"""A federation whose rows have a number, a category and a text, two of which may be missing."""

from typing import Any

from tests.small_federation import kept_certificate
from tests.vectors.make_rows import MIXED_COLUMNS

from dppp.federation import Parties, create_federation
from dppp.learning.models import as_predict

CLASSES = ("well", "ill")
SEEN: list[Any] = []
"""What the models were asked about, since the last federation was made."""


def says_pain(rows: Any) -> list[str]:
    """A model that takes a DataFrame: by the note, or by the age where there is none."""
    SEEN.append(rows)
    notes = rows["note"].fillna("").str.contains("pain")
    return [CLASSES[int(each)] for each in notes | (rows["age"] > 70)]


def mixed_federation(*, queries: int = 20) -> Parties:
    SEEN.clear()
    certificate = kept_certificate(
        "skellam",
        epsilon=40,
        delta=1e-4,
        teachers=7,
        colluders=1,
        dropouts=1,
        queries=queries,
        classes=2,
    )
    return create_federation(
        name="Wards",
        class_names=CLASSES,
        features=MIXED_COLUMNS,
        certificate=certificate,
        models=[as_predict(says_pain, CLASSES)] * 7,
    )
