"""One line a figure: what it shows, in numbers of this run."""

from collections.abc import Sequence

from dppp.experiments.claims import CALIBRATIONS
from dppp.experiments.curve_comparison import (
    COMPARABLE,
    comparable_from,
    dppp_curves,
    only_row,
    spread_of,
)
from dppp.experiments.curves import Row
from dppp.experiments.overhead import Overhead
from dppp.experiments.skew import EPSILON as SKEW_EPSILON
from dppp.experiments.skew import SkewRow
from dppp.experiments.stored_votes import StoredVotes


def shows_epsilon(votes: StoredVotes, rows: Sequence[Row]) -> str:
    """Where DPPP reaches the plurality, and what has no certificate."""
    best = dppp_curves(rows, "certified")["best family, γ = 2/3"]
    binomial = dppp_curves(rows, "paper")["binomial, γ = 2/3"]
    starts = [comparable_from(rows, each) for each in (best, binomial)]
    words = ["nowhere" if start is None else f"from ε = {start:g}" for start in starts]
    plurality = only_row(rows, "distributed").accuracy_mean
    bad = sum(
        not row.certified
        for row in rows
        if (row.framework, row.noise, row.calibration) == ("dppp", "discrete-gaussian", "paper")
    )
    return (
        f"One teacher is right in {votes.teacher_accuracy:.1%} of the records, the plurality of "
        f"{votes.teachers} in {plurality:.1%}. Certified DPPP (γ = 2/3) comes within "
        f"{100 * COMPARABLE:.0f} points of that {words[0]}, the paper's binomial noise {words[1]}; "
        f"the paper's discrete Gaussian has no certificate at {bad} of its {2 * len(best)} points."
    )


def shows_delta(by_epsilon: Sequence[Row], by_delta: Sequence[Row], epsilon: float) -> str:
    """How far ε and δ move accuracy."""
    parts = []
    for calibration in CALIBRATIONS:
        varied_epsilon = dppp_curves(by_epsilon, calibration)
        for name, varied_delta in dppp_curves(by_delta, calibration).items():
            by_one, by_other = spread_of(varied_epsilon[name]), spread_of(varied_delta)
            parts.append(f"{100 * by_one:.1f} points and {100 * by_other:.1f} ({name})")
    return f"ε moves accuracy by so much, and δ at ε = {epsilon:g}: {'; '.join(parts)}."


def shows_overhead(rows: Sequence[Overhead]) -> str:
    """The largest N and key, both ways."""
    largest = max((row.modulus_bits, row.teachers) for row in rows)
    paper, ours = (
        next(row for row in rows if (row.modulus_bits, row.teachers) == largest and row.way == way)
        for way in ("paper", "dppp")
    )
    return (
        f"At {paper.teachers} teachers and {paper.modulus_bits} bits a label of {paper.classes} "
        f"classes costs a teacher {paper.teacher_cpu_ms:,.0f} ms and the aggregator "
        f"{paper.aggregator_cpu_ms:,.0f} ms the paper's way, {ours.teacher_cpu_ms:,.1f} and "
        f"{ours.aggregator_cpu_ms:,.1f} ms ours, in batches of {ours.labels}; a teacher sends "
        f"{paper.teacher_sends_bytes:,.0f} bytes there and {ours.teacher_sends_bytes:,.0f} here, "
        f"and receives {paper.teacher_receives_bytes:,.0f} and {ours.teacher_receives_bytes:,.0f}."
    )


def shows_skew(rows: Sequence[SkewRow]) -> str:
    """The most skewed dealing, with and without the remedy."""
    hardest = min(row.alpha for row in rows)
    chosen = {
        (row.dataset, row.sizes, row.remedy): row.accuracy_mean
        for row in rows
        if row.framework == "dppp-best" and row.alpha == hardest
    }
    parts = [
        f"{dataset}, {sizes} sizes: {accuracy:.1%} when all vote, "
        f"{chosen[dataset, sizes, True]:.1%} when the unsure are silent"
        for (dataset, sizes, remedy), accuracy in chosen.items()
        if not remedy
    ]
    return f"Certified at ε = {SKEW_EPSILON:g}, α = {hardest:g}. " + "; ".join(parts) + "."
