"""What one experiment made: its files, its rows, and a sentence that sums it up.

Used by every step of `dppp reproduce` and by the report.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dppp.experiments.accuracy.claims import Claim
from dppp.experiments.accuracy.encrypted import EncryptedPoint

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Artefact:
    """What one command made: files, rows, checked claims, and a sentence that sums it up."""

    command: str
    dataset: str | None
    summary: str
    table: Path
    figure: Path
    rows: "Sequence[DataclassInstance]"
    claims: Sequence[Claim] = ()
    encrypted: Sequence[EncryptedPoint] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Plain values, with the files by their names."""
        return {
            "command": self.command,
            "dataset": self.dataset,
            "shows": self.summary,
            "csv": str(self.table),
            "png": str(self.figure),
            "seconds": round(self.seconds, 1),
            "claims": [asdict(claim) for claim in self.claims],
            "encrypted": [asdict(point) for point in self.encrypted],
            "rows": [asdict(row) for row in self.rows],
        }
