"""Time and bytes for each teacher and the aggregator, against N and the length of the key.

The paper's way: its protocol as written, t = ⌊2N/3⌋; one class of one label is run, and all classes
cost that times their number. Ours: a whole batch through the protocol. Times are processor times of
one party. Used by `dppp reproduce overhead`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dppp.errors import WeakModulusWarning
from dppp.experiments.accuracy.curves import OnProgress
from dppp.experiments.costs.paper_protocol import run_paper
from dppp.experiments.costs.whole_federation import Round, run_federation
from dppp.experiments.figures import BLUE, VERMILION, name_axes, new_figure, save
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, deal
from dppp.paillier.encryption import write_ciphertexts
from dppp.paillier.keys import Decryption

TEACHERS = (20, 100, 250)
MODULUS_BITS = (1024, 2048)
CLASSES = 10
LABELS = 50
"""Labels in a batch of ours: about as many as one ciphertext holds at 2048 bits."""

_WAYS = (("paper", "the paper's way", VERMILION, "s"), ("dppp", "dppp", BLUE, "o"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What one label costs one teacher that votes and helps to decrypt, and the aggregator."""

    way: str
    modulus_bits: int
    teachers: int
    classes: int
    labels: int
    teacher_cpu_ms: float
    aggregator_cpu_ms: float
    teacher_sends_bytes: float
    teacher_receives_bytes: float


def measure_overhead(
    *,
    teachers: Sequence[int] = TEACHERS,
    modulus_bits: Sequence[int] = MODULUS_BITS,
    classes: int = CLASSES,
    labels: int = LABELS,
    report: OnProgress = lambda *_: None,
) -> list[Overhead]:
    """Both ways at every N and length of key."""
    points = [(bits, number) for bits in modulus_bits for number in teachers]
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModulusWarning)  # 1024 bits are the paper's
        for done, (bits, number) in enumerate(points):
            report(done, len(points))
            rows.append(as_the_paper(number, bits, classes))
            rows.append(as_we_do(number, bits, classes, labels))
    report(len(points), len(points))
    return rows


def as_the_paper(teachers: int, modulus_bits: int, classes: int) -> Overhead:
    """One class of one label, times the classes."""
    threshold = max(2, 2 * teachers // 3)
    key = deal(
        teachers=teachers,
        threshold=threshold,
        modulus_bits=modulus_bits,
        s=1,
        decryption=Decryption.PAPER,
        insecure_testing=True,
    )
    run = run_paper(key, [index % 2 for index in range(teachers)])
    costs, size = run.costs, len(write_ciphertexts(key.public, [run.tally]))
    return Overhead(
        way="paper",
        modulus_bits=modulus_bits,
        teachers=teachers,
        classes=classes,
        labels=1,
        teacher_cpu_ms=1e3 * classes * (costs.encryption / teachers + costs.shares / threshold),
        aggregator_cpu_ms=1e3 * classes * (costs.tally + costs.combination),
        teacher_sends_bytes=2 * size * classes,
        teacher_receives_bytes=size * classes,
    )


def as_we_do(teachers: int, modulus_bits: int, classes: int, labels: int) -> Overhead:
    """A whole batch; a teacher takes part in every round."""
    run = run_federation(
        teachers=teachers, classes=classes, labels=labels, modulus_bits=modulus_bits, s=4
    )
    rounds = [_mean_of(each) for each in run.meter.rounds.values()]
    seconds, sends, receives = (sum(amounts) for amounts in zip(*rounds, strict=True))
    return Overhead(
        way="dppp",
        modulus_bits=modulus_bits,
        teachers=teachers,
        classes=classes,
        labels=labels,
        teacher_cpu_ms=1e3 * seconds / labels,
        aggregator_cpu_ms=1e3 * (run.cpu_seconds - run.meter.teachers_cpu_seconds) / labels,
        teacher_sends_bytes=sends / labels,
        teacher_receives_bytes=receives / labels,
    )


def _mean_of(measured: Round) -> tuple[float, float, float]:
    """Of those who were asked in one round: processor seconds, bytes sent, bytes received."""
    asked = len(measured.asked_bytes)
    sent, received = sum(measured.answer_bytes), sum(measured.asked_bytes)
    return measured.cpu_seconds / asked, sent / asked, received / asked


def summarise_overhead(rows: Sequence[Overhead]) -> str:
    """One sentence: the largest N and key, both ways."""
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


def draw_overhead(rows: Sequence[Overhead], path: Path) -> Path:
    """Time and bytes against N, a line for each way and length of key."""
    figure, panels = new_figure(8, 6.2, 2, 2)
    titles = {
        "teacher_cpu_ms": "a teacher, processor ms per label",
        "aggregator_cpu_ms": "the aggregator, processor ms per label",
        "teacher_sends_bytes": "a teacher sends, bytes per label",
        "teacher_receives_bytes": "a teacher receives, bytes per label",
    }
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=True):
        _plot_overhead(axes, rows, name)
        axes.set_yscale("log")
        name_axes(axes, title, {row.teachers for row in rows})
        axes.set_xlabel("teachers")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    return save(figure, path)


def _plot_overhead(axes: Any, rows: Sequence[Overhead], name: str) -> None:
    for way, words, colour, marker in _WAYS:
        for bits in sorted({row.modulus_bits for row in rows}):
            points = [row for row in rows if (row.way, row.modulus_bits) == (way, bits)]
            axes.plot(
                [row.teachers for row in points],
                [getattr(row, name) for row in points],
                color=colour,
                linestyle=":" if bits < DEFAULT_MODULUS_BITS else "-",
                marker=marker,
                markersize=4,
                label=f"{words}, {bits} bits",
            )
