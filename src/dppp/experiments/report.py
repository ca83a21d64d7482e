"""All experiments, one after the other, in one HTML file that needs nothing outside it.

Used by `dppp reproduce all`.
"""

import base64
import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from dppp.experiments.accuracy.claims import Claim
from dppp.experiments.accuracy.curves import REPETITIONS, SEED, OnProgress, Row
from dppp.experiments.artefact import Artefact
from dppp.experiments.reproduce import (
    reproduce_delta,
    reproduce_epsilon,
    reproduce_overhead,
    reproduce_skew,
)
from dppp.experiments.several_votes.against_votes import FEDERATIONS
from dppp.experiments.several_votes.artefacts import reproduce_company, reproduce_votes
from dppp.experiments.several_votes.company import DATASET as COMPANY_DATASET
from dppp.experiments.skew import RECIPES

_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 66em; margin: 2em auto; padding: 0 1em; color: #222 }
img { max-width: 100% }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px }
table { display: block; overflow-x: auto }
td, th { border: 1px solid #ccc; padding: 2px 8px; text-align: left } th { background: #f3f3f3 }
.false { color: #b00; font-weight: bold } .true { color: #070 } summary { cursor: pointer }
"""

_INTRODUCTION = """
<p>Section VII of the paper, run again on stored votes. Every framework is in the table with its
promise per query; <b>certified</b> means that the exact joint δ of the noise is within the promise.
Dashed curves with hollow marks are <b>not certified</b>: their accuracy is not comparable, since
part of the noise that the promise needs is missing. Accuracy is the mean over repetitions of the
noise, ± its standard deviation, for one trained ensemble. <b>Votes</b> and <b>company</b> are
different: there the promise is for 100 answers in total, the average over the noise is exact, and ±
is over splits of the records.</p>
"""


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
    report: OnProgress = lambda *_: None,
) -> Everything:
    """Both curves of each dataset, overhead, skew and votes where they are measured, report.html.

    `repetitions` are draws of the noise; what is averaged exactly over it does not need them.
    """
    made: list[Artefact] = []
    skewed = [dataset for dataset in datasets if dataset in RECIPES]
    voted = [dataset for dataset in datasets if dataset in FEDERATIONS]
    has_company = COMPANY_DATASET in datasets
    total = 2 * len(datasets) + 1 + bool(skewed) + has_company + bool(voted)
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
    if has_company:
        report(len(made), total)
        made.append(reproduce_company(out, seed=seed))
    if voted:
        report(len(made), total)
        made.append(reproduce_votes(voted, out, seed=seed))
    report(total, total)
    return Everything(artefacts=tuple(made), report=write_report(made, out / "report.html"))


def write_report(artefacts: Sequence[Artefact], path: Path) -> Path:
    """All artefacts, in their order."""
    parts = [_section(artefact) for artefact in artefacts]
    text = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>The paper's experiments, reproduced</title><style>{_STYLE}</style></head><body>"
        f"<h1>The paper's experiments, reproduced</h1>{_INTRODUCTION}{''.join(parts)}</body></html>"
    )
    path.write_text(text, encoding="utf-8")
    return path


def _section(artefact: Artefact) -> str:
    name = " ".join(filter(None, (artefact.command, artefact.dataset)))
    picture = base64.b64encode(artefact.figure.read_bytes()).decode("ascii")
    parts = [
        f"<h2>{html.escape(name)}</h2><p>{html.escape(artefact.summary)}</p>",
        f"<img alt='{html.escape(name)}' src='data:image/png;base64,{picture}'>",
    ]
    if artefact.claims:
        parts.append(f"<h3>Claims of the paper</h3>{_claims_table(artefact.claims)}")
    if artefact.encrypted:
        rows = [asdict(point) for point in artefact.encrypted]
        parts.append(f"<h3>Through the real encrypted protocol</h3>{_table(rows)}")
    rows = [asdict(row) for row in artefact.rows]
    parts.append(f"<details><summary>All {len(rows)} rows</summary>{_table(rows)}</details>")
    return "".join(parts)


def _claims_table(claims: Sequence[Claim]) -> str:
    lines = "".join(
        f"<tr><td>{html.escape(claim.claim)}</td><td>{html.escape(claim.calibration)}</td>"
        f"<td class='{str(claim.holds).lower()}'>{str(claim.holds).lower()}</td>"
        f"<td>{html.escape(claim.detail)}</td></tr>"
        for claim in claims
    )
    head = "<tr><th>claim</th><th>calibration</th><th>holds</th><th>measured</th></tr>"
    return f"<table>{head}{lines}</table>"


def _table(rows: Sequence[dict[str, object]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row.values())
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
