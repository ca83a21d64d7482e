"""From the paper to this package, one idea at a time: what each gained.

Every step decrypts a real tally and its sum is checked. Costs are processor milliseconds of all
parties for one label. Used by `dppp bench --steps` and `--plot`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import gmpy2
from gmpy2 import mpz

from dppp.benchmarks.whole_run import Costs
from dppp.benchmarks.workload import Workload
from dppp.errors import DpppError, InputError, MissingExtraError
from dppp.experiments.costs.paper_protocol import PaperRun
from dppp.experiments.costs.processor_time import time_once
from dppp.paillier.arithmetic.lagrange import interpolate
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey
from dppp.paillier.decryption import paper
from dppp.paillier.encryption import encrypt
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import generator_logarithm

_SAMPLES = 20


def measure_steps(workload: Workload, key: DealtKey, run: PaperRun) -> list[dict[str, object]]:
    """The steps that keep the paper's kind of key, s = 1; each row has step, what and ms."""
    costs = run.costs
    per_ciphertext = workload.labels_per_ciphertext(key.public)
    short = workload.teachers * _short_encryption(key.public)
    pippenger = _checked(run, lambda: paper.combine(key.public, run.subset, run.shares))
    smallest = _smallest_denominators(key, run)
    rows = (
        ("paper", "as written, one ciphertext per class", workload.classes * costs.everyone),
        ("packing", "classes and labels share a ciphertext", costs.everyone / per_ciphertext),
        (
            "fixed base",
            "blindings from a table of powers of h",
            (short + costs.tally + costs.shares + costs.combination) / per_ciphertext,
        ),
        (
            "Pippenger",
            "all powers of the combination at once",
            (short + costs.tally + costs.shares + pippenger) / per_ciphertext,
        ),
        (
            "denominators",
            "the common factor of Lagrange's coefficients taken out",
            (short + costs.tally + costs.shares + smallest) / per_ciphertext,
        ),
    )
    return [{"step": step, "what": what, "ms": 1e3 * seconds} for step, what, seconds in rows]


def root_step(workload: Workload, costs: Costs) -> dict[str, object]:
    """The row for root decryption at the workload's s, from a whole run."""
    return {
        "step": f"root, s = {workload.s}",
        "what": "shares modulo n, opened by a root",
        "ms": 1e3 * costs.everyone / workload.labels,
    }


def plot_steps(result: Mapping[str, object], path: Path) -> None:
    """Bars of processor milliseconds per label, one for each step, on a logarithmic scale."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra that few commands need
    except ImportError as error:
        raise MissingExtraError("the plot needs matplotlib", extra="experiments") from error
    steps = result["steps"]
    if not isinstance(steps, list):
        raise InputError("there are no steps to plot", hint="measure them with --steps")
    names = [step["step"] for step in steps]
    milliseconds = [step["ms"] for step in steps]
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(names, milliseconds, color="#2f6f9f")
    axes.bar_label(bars, labels=[f"{value:,.0f}" for value in milliseconds], padding=3)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlim(left=1, right=8 * max(milliseconds))
    axes.set_xlabel("processor milliseconds per label, all parties")
    axes.set_title(
        f"{result['teachers']} teachers, {result['classes']} classes, "
        f"{result['modulus_bits']} bits, batches of {result['labels']} labels"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _short_encryption(public: PublicKey) -> float:
    table = BlindingTable(public)
    _, seconds = time_once(lambda: [encrypt(public, mpz(1), table.draw()) for _ in range(_SAMPLES)])
    return seconds / _SAMPLES


def _smallest_denominators(key: DealtKey, run: PaperRun) -> float:
    """The same shares, which keep N! for safety, combined with the smallest denominator."""
    public, square = key.public, key.public.ciphertext_modulus

    def combine() -> mpz:
        weights = interpolate(run.subset)
        product = multiply_powers(run.shares, weights.coefficients, square)
        factor = 2 * public.factorial * weights.denominator
        inverse = gmpy2.invert(factor, public.plaintext_modulus)
        return generator_logarithm(public, product) * inverse % public.plaintext_modulus

    return _checked(run, combine)


def _checked(run: PaperRun, combine: Callable[[], mpz]) -> float:
    total, seconds = time_once(combine)
    if total != run.total:
        raise DpppError("a step of the benchmark has a wrong sum; do not trust it")
    return seconds
