"""Whether private answers are worth having, and to whom: computed from votes on held-out records.

A private accuracy alone says little. Beside it stands what one has without the federation:

- an **outsider** has no records: the majority class of the training labels, or one teacher's votes
  under local privacy, where that teacher adds all the noise that the same promise needs;
- a **teacher** has its own model, trained on all its own records.

The private accuracy is the exact average over all noise (win_probability.py), not one draw of it.
What stays uncertain is the sample of held-out records, and every sentence says how much.

This needs the votes in the clear and true labels. It is for simulations and for records whose
holders agree: in a deployment nobody has these votes, and publishing a verdict on private records
would tell something of them that no noise covers.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.win_probability import chances_of_label
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise
from dppp.privacy.pmf import Floats

if TYPE_CHECKING:
    from dppp.learning.advice import Advice

OUTSIDER, TEACHER = "an outsider", "a teacher"
"""The two kinds of askers."""

_CLEAR = 2.0
"""A difference of this many standard errors is told from chance (about 95 %)."""

LEAST_GAIN = 0.005
"""One more right answer in two hundred: less is not worth a federation, however sure it is."""

_MOST_ROWS_NEEDED = 1_000_000
"""A gain that only more records than this would tell is none to speak of."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """What teachers say of records that nobody trained on, and what is true."""

    votes: NDArray[np.int64]
    """Counts by teacher, record and class: what a teacher's models say, without noise."""
    labels: NDArray[np.int64]
    """The right class of each record."""
    majority: int
    """The class that is most frequent among the training labels."""
    alone: Floats
    """By teacher and record: 1 where the teacher's own model, trained on all it has, is right.

    NaN where that model was trained on the record; those are left out of every average.
    """

    def __post_init__(self) -> None:
        teachers, rows, classes = self.votes.shape
        if rows < 1 or self.labels.shape != (rows,) or self.alone.shape != (teachers, rows):
            raise InputError("a verdict takes votes, labels and own models' answers of equal size")
        if not np.all((self.labels >= 0) & (self.labels < classes)):
            raise InputError("a true label is not among the classes that are voted on")
        if np.isnan(self.alone).all(axis=0).any() or np.isnan(self.alone).all(axis=1).any():
            raise InputError("a record or a teacher has no own model's answer to compare with")

    @property
    def tally(self) -> NDArray[np.int64]:
        """Votes of all teachers together, by record and class."""
        return np.asarray(self.votes.sum(axis=0))

    @property
    def largest_voters(self) -> NDArray[np.int64]:
        """The votes of those teachers that cast the most: public numbers choose them."""
        cast = self.votes.sum(axis=2).max(axis=1)
        return np.asarray(self.votes[cast == cast.max()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The private answers against what one has without them, on the same records."""

    asker: str
    against: str
    accuracy: float
    gain: float
    """Expected private accuracy less that of `against`."""
    error: float
    """One standard error of the gain, over samples of as many records."""
    rows: int

    @property
    def is_better(self) -> bool:
        """On these records, on average over all noise."""
        return self.gain > 0

    @property
    def is_clear(self) -> bool:
        """Whether another sample of as many records would very likely say the same."""
        return abs(self.gain) > _CLEAR * self.error

    @property
    def is_worth_it(self) -> bool:
        """Better by more than the sample leaves open, and by enough to notice."""
        return self.is_clear and self.gain >= LEAST_GAIN

    @property
    def rows_needed(self) -> int | None:
        """About how many held-out records would tell, if the gain stays what it is."""
        if self.is_clear or not self.gain or not math.isfinite(self.error):
            return None
        return math.ceil(self.rows * (_CLEAR * self.error / self.gain) ** 2)

    @property
    def sentence(self) -> str:
        """For people."""
        points = f"{100 * abs(self.gain):.1f}"
        way = "more" if self.is_better else "less"
        beside = f"than {self.against} ({100 * self.accuracy:.1f} %)"
        if self.is_clear:
            verdict = "Worth it" if self.is_worth_it else "Not worth it"
            return (
                f"{verdict} to {self.asker}: {points} points {way} right {beside}, "
                f"± {100 * _CLEAR * self.error:.1f}."
            )
        margin = (
            f"± {100 * _CLEAR * self.error:.1f}" if math.isfinite(self.error) else "one is too few"
        )
        return (
            f"Cannot be told from {self.rows} records whether it is worth it to {self.asker}: on "
            f"these {points} points {way} right {beside}, {margin}.{self._what_would_tell}"
        )

    @property
    def _what_would_tell(self) -> str:
        needed = self.rows_needed
        if needed is None or needed > _MOST_ROWS_NEEDED:
            return ""
        return f" If that holds, about {float(f'{needed:.2g}'):,.0f} records would tell."


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Every figure that belongs beside a private one, and the two verdicts."""

    rows: int
    queries: int
    accuracy_expected: float
    """Of private answers: the exact average over all noise."""
    spread_noise: float
    """Standard deviation, over the noise, of the accuracy of `queries` answers."""
    spread_rows: float
    """Standard error of accuracy_expected, over samples of as many held-out records."""
    accuracy_plurality: float
    accuracy_majority: float
    accuracy_local: float
    accuracy_single: float
    accuracy_single_worst: float
    teachers: int
    teachers_better_off: int
    """To how many teachers the private answers are better than their own model, on average."""
    outsider: Comparison
    teacher: Comparison
    advice: "tuple[Advice, ...]" = ()
    """What would make it worth it, where it is not; empty until advice.py worked it out."""

    @property
    def worth_it(self) -> bool:
        """To an outsider: clearly better than the majority class and than local privacy."""
        return self.outsider.is_worth_it

    @property
    def worth_it_to_a_teacher(self) -> bool:
        """Clearly better than a teacher's own model, on average over the teachers."""
        return self.teacher.is_worth_it

    @property
    def sentences(self) -> tuple[str, str]:
        """To an outsider, and to a teacher."""
        return (
            self.outsider.sentence,
            f"{self.teacher.sentence} "
            f"{self.teachers_better_off} of {self.teachers} teachers are better off.",
        )

    def to_json(self) -> dict[str, Any]:
        """The names that `--json` prints."""
        names = (
            "accuracy_expected",
            "spread_noise",
            "spread_rows",
            "accuracy_plurality",
            "accuracy_majority",
            "accuracy_local",
            "accuracy_single",
            "accuracy_single_worst",
            "teachers_better_off",
            "worth_it",
            "worth_it_to_a_teacher",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "worth_it_is_clear": self.outsider.is_clear,
            "worth_it_to_a_teacher_is_clear": self.teacher.is_clear,
            "verdict": list(self.sentences),
            "advice": [each.to_json() for each in self.advice],
        }


def judge(held_out: HeldOut, certificate: Certificate) -> Verdict:
    """The verdict for this certificate's noise: of all teachers' shares in a tally."""
    noise = certificate.noise.of_teachers(certificate.trust.teachers)
    right = chances_of_label(held_out.tally, held_out.labels, noise)
    local = locally_private(held_out, certificate.noise)
    alone = np.nanmean(held_out.alone, axis=1)
    queries = certificate.promise.queries
    return Verdict(
        rows=len(right),
        queries=queries,
        accuracy_expected=float(right.mean()),
        spread_noise=math.sqrt(float(np.mean(right * (1 - right))) / queries),
        spread_rows=_standard_error(right),
        accuracy_plurality=float(plurality(held_out).mean()),
        accuracy_majority=float(np.mean(held_out.labels == held_out.majority)),
        accuracy_local=float(local.mean()),
        accuracy_single=float(alone.mean()),
        accuracy_single_worst=float(alone.min()),
        teachers=len(alone),
        teachers_better_off=int(np.sum(alone < right.mean())),
        outsider=compare(OUTSIDER, held_out, right, local),
        teacher=compare(TEACHER, held_out, right, local),
    )


def compare(asker: str, held_out: HeldOut, right: Floats, local: Floats) -> Comparison:
    """How likely the private answers are right beside the best that this asker has without them."""
    if asker == TEACHER:
        return _compare(asker, right, {"its own model": np.nanmean(held_out.alone, axis=0)})
    majority = (held_out.labels == held_out.majority).astype(np.float64)
    others = {"always saying the majority class": majority, "one teacher's noisy votes": local}
    return _compare(asker, right, others)


def locally_private(held_out: HeldOut, noise: Noise) -> Floats:
    """How likely one teacher alone is right where it adds all the noise of the promise itself.

    `noise` is the sum of the honest shares, which is what the promise needs. The teacher asked is
    one of those with the most votes.
    """
    by_teacher = [
        chances_of_label(votes, held_out.labels, noise) for votes in held_out.largest_voters
    ]
    return np.asarray(np.mean(by_teacher, axis=0))


def plurality(held_out: HeldOut) -> Floats:
    """How likely the votes are right without noise: equal counts share the chance."""
    tally = held_out.tally
    leads = tally == tally.max(axis=1, keepdims=True)
    is_right = leads[np.arange(len(tally)), held_out.labels]
    return np.asarray(is_right / leads.sum(axis=1))


def _compare(asker: str, right: Floats, others: dict[str, Floats]) -> Comparison:
    """Against the best of the others; differences are taken record by record."""
    against = max(others, key=lambda name: others[name].mean())
    gains = right - others[against]
    return Comparison(
        asker=asker,
        against=against,
        accuracy=float(others[against].mean()),
        gain=float(gains.mean()),
        error=_standard_error(gains),
        rows=len(gains),
    )


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
