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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.number_verdict import root_mean_square
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

_MUCH_NOISE = 0.05
"""What noise costs is said from here on: one answer in twenty."""

_MOST_ROWS_NEEDED = 1_000_000
"""A gain that only more records than this would tell is none to speak of."""


class Seen(Protocol):
    """What teachers say of records that nobody trained on, whatever the question is.

    A row's measure says how right an answer is, 1 for wholly right: for one of several classes the
    chance to be right, for labels and numbers see label_verdict.py and number_verdict.py.
    """

    @property
    def measure(self) -> str:
        """What the measure is, in words."""

    @property
    def votes(self) -> NDArray[np.int64]:
        """Counts by teacher, record and class, label or number, without noise."""

    @property
    def alone(self) -> Floats:
        """The measure of each teacher's own model; NaN where that was trained on the record."""

    def private(self, noise: Noise, times: float = 1.0) -> tuple[Floats, Floats]:
        """By row, the mean of the measure over all noise and its variance.

        With `times` as many teachers, who vote in the same proportions.
        """

    def local(self, noise: Noise) -> Floats:
        """Of one teacher's votes, where it adds all the noise itself."""

    def in_clear(self) -> Floats:
        """Of the votes without noise."""

    def without(self) -> tuple[str, Floats]:
        """Of what somebody says who knows no more than the training labels, and its name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """What teachers say of one of several classes, and what is true."""

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
            raise InputError(
                "a verdict takes votes, labels and own models' answers of equal size",
                hint="give one row of votes, one label and one own answer per record",
            )
        if not np.all((self.labels >= 0) & (self.labels < classes)):
            raise InputError(
                "a true label is not among the classes that are voted on",
                hint="give labels that fit saw",
            )
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

    @property
    def measure(self) -> str:
        """In words."""
        return "right"

    def private(self, noise: Noise, times: float = 1.0) -> tuple[Floats, Floats]:
        """How likely each row is right."""
        grown = np.rint(self.tally * times).astype(np.int64)
        right = chances_of_label(grown, self.labels, noise)
        return right, right * (1 - right)

    def local(self, noise: Noise) -> Floats:
        """The teacher asked is one of those with the most votes."""
        by_teacher = [chances_of_label(votes, self.labels, noise) for votes in self.largest_voters]
        return np.asarray(np.mean(by_teacher, axis=0))

    def in_clear(self) -> Floats:
        """How likely the votes are right without noise: equal counts share the chance."""
        tally = self.tally
        leads = tally == tally.max(axis=1, keepdims=True)
        is_right = leads[np.arange(len(tally)), self.labels]
        return np.asarray(is_right / leads.sum(axis=1))

    def without(self) -> tuple[str, Floats]:
        """The majority class of the training labels."""
        name = "always saying the majority class"
        return name, (self.labels == self.majority).astype(np.float64)


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
    measure: str = "right"

    @property
    def is_better(self) -> bool:
        """On these records, on average over all noise."""
        return self.gain > 0

    @property
    def is_clear(self) -> bool:
        """Whether another sample of as many records would very likely say the same.

        Also where it is open which of the two is better, and sure that the gain is too small.
        """
        margin = _CLEAR * self.error
        return abs(self.gain) > margin or self.gain + margin < LEAST_GAIN

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
        difference = f"{points} points {way} {self.measure} than"
        if points == "0.0":
            difference = f"as {'often' if self.measure == 'right' else 'much'} {self.measure} as"
        beside = f"{difference} {self.against} ({in_percent(self.accuracy)} %)"
        if self.is_clear:
            verdict = "Worth it" if self.is_worth_it else "Not worth it"
            return f"{verdict} to {self.asker}: {beside}, ± {100 * _CLEAR * self.error:.1f}."
        margin = (
            f"± {100 * _CLEAR * self.error:.1f}" if math.isfinite(self.error) else "one is too few"
        )
        return (
            f"Cannot be told from {self.rows} records whether it is worth it to {self.asker}: on "
            f"these {beside}, {margin}.{self._what_would_tell}"
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
    measure: str = "right"
    """What the accuracies are, in words: shares of rows that are right, or a measure of each row.

    Where the question is a number they are parts of the squared error of always saying the mean
    that is explained; `error_of` makes an error of them.
    """
    scale: float | None = None
    """For a number: the mean squared error of always saying the mean."""

    @property
    def worth_it(self) -> bool:
        """To an outsider: clearly better than the majority class and than local privacy."""
        return self.outsider.is_worth_it

    @property
    def worth_it_to_a_teacher(self) -> bool:
        """Clearly better than a teacher's own model, on average over the teachers."""
        return self.teacher.is_worth_it

    def error_of(self, accuracy: float) -> float:
        """The root mean squared error that one of these accuracies means, for a number."""
        if self.scale is None:
            raise InputError("answers that are not numbers have no error", hint="see accuracy_*")
        return root_mean_square(accuracy, self.scale)

    @property
    def _lost_to_noise(self) -> str:
        """Answers may be better than all else and still be mostly noise: who reads on should know.

        Nothing where noise costs little.
        """
        lost = self.accuracy_plurality - self.accuracy_expected
        if lost < _MUCH_NOISE:
            return ""
        return (
            f" Noise takes {100 * lost:.1f} points: {in_percent(self.accuracy_expected)} % "
            f"{self.measure} with it, {in_percent(self.accuracy_plurality)} % without."
        )

    @property
    def sentences(self) -> tuple[str, str]:
        """To an outsider, and to a teacher."""
        return (
            self.outsider.sentence + self._lost_to_noise,
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
        found = {name: getattr(self, name) for name in names}
        if self.scale is not None:
            found = {**self._errors(), **{name: found[name] for name in names[8:]}}
        elif self.measure != "right":
            found["measure"] = self.measure
        return {
            **found,
            "worth_it_is_clear": self.outsider.is_clear,
            "worth_it_to_a_teacher_is_clear": self.teacher.is_clear,
            "verdict": list(self.sentences),
            "advice": [each.to_json() for each in self.advice],
        }

    def _errors(self) -> dict[str, float]:
        """For a number: errors in its own unit, and R² beside always saying the mean."""
        kinds = ("expected", "plurality", "majority", "local", "single", "single_worst")
        return {
            **{f"error_{kind}": self.error_of(getattr(self, f"accuracy_{kind}")) for kind in kinds},
            "r2_expected": self.accuracy_expected,
            "spread_noise": self.spread_noise,
            "spread_rows": self.spread_rows,
        }


def judge(held_out: Seen, certificate: Certificate) -> Verdict:
    """The verdict for this certificate's noise: of all teachers' shares in a tally."""
    right, variances = held_out.private(certificate.noise.of_teachers(certificate.trust.teachers))
    local = locally_private(held_out, certificate.noise)
    alone = np.nanmean(held_out.alone, axis=1)
    queries = certificate.promise.queries
    return Verdict(
        rows=len(right),
        queries=queries,
        accuracy_expected=float(right.mean()),
        spread_noise=math.sqrt(float(np.mean(variances)) / queries),
        spread_rows=_standard_error(right),
        accuracy_plurality=float(plurality(held_out).mean()),
        accuracy_majority=float(held_out.without()[1].mean()),
        accuracy_local=float(local.mean()),
        accuracy_single=float(alone.mean()),
        accuracy_single_worst=float(alone.min()),
        teachers=len(alone),
        teachers_better_off=int(np.sum(alone < right.mean())),
        outsider=compare(OUTSIDER, held_out, right, local),
        teacher=compare(TEACHER, held_out, right, local),
        measure=held_out.measure,
    )


def compare(asker: str, held_out: Seen, right: Floats, local: Floats) -> Comparison:
    """How right the private answers are beside the best that this asker has without them."""
    if asker == TEACHER:
        others = {"its own model": np.nanmean(held_out.alone, axis=0)}
    else:
        name, without = held_out.without()
        others = {name: without, "one teacher's noisy votes": local}
    return _compare(asker, held_out.measure, right, others)


def locally_private(held_out: Seen, noise: Noise) -> Floats:
    """How right one teacher alone is where it adds all the noise of the promise itself.

    `noise` is the sum of the honest shares, which is what the promise needs.
    """
    return held_out.local(noise)


def plurality(held_out: Seen) -> Floats:
    """How right the votes are without noise."""
    return held_out.in_clear()


def _compare(asker: str, measure: str, right: Floats, others: dict[str, Floats]) -> Comparison:
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
        measure=measure,
    )


def in_percent(accuracy: float) -> str:
    """To one digit, and never -0.0."""
    return f"{round(100 * accuracy, 1) + 0.0:.1f}"


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
