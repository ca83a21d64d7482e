"""All experiments, one after the other, and one report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from dppp.experiments.curves import REPETITIONS, SEED, Row
from dppp.experiments.report import write_report
from dppp.experiments.reproduce import (
    Artefact,
    Report,
    reproduce_delta,
    reproduce_epsilon,
    reproduce_overhead,
    reproduce_skew,
)
from dppp.experiments.skew import RECIPES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Everything:
    """What every command made, and the report on it."""

    artefacts: tuple[Artefact, ...]
    report: Path

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "report": str(self.report),
            "artefacts": [artefact.to_json() for artefact in self.artefacts],
        }


def reproduce_all(
    datasets: Sequence[str],
    out: Path,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    with_encryption: bool = True,
    report: Report = lambda *_: None,
) -> Everything:
    """Both curves of each dataset, overhead, skew where it is measured, and report.html."""
    made: list[Artefact] = []
    skewed = [dataset for dataset in datasets if dataset in RECIPES]
    total = 2 * len(datasets) + 1 + bool(skewed)
    for dataset in datasets:
        report(len(made), total)
        by_epsilon = reproduce_epsilon(
            dataset, out, repetitions=repetitions, seed=seed, with_encryption=with_encryption
        )
        made.append(by_epsilon)
        report(len(made), total)
        rows = cast(Sequence[Row], by_epsilon.rows)
        made.append(
            reproduce_delta(dataset, out, repetitions=repetitions, seed=seed, by_epsilon=rows)
        )
    report(len(made), total)
    made.append(reproduce_overhead(out))
    if skewed:
        report(len(made), total)
        made.append(reproduce_skew(skewed, out, repetitions=repetitions, seed=seed))
    report(total, total)
    return Everything(artefacts=tuple(made), report=write_report(made, out / "report.html"))
