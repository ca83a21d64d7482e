"""What would make private answers worth having: the least change of one number, computed.

Used where a verdict (verdict.py) does not say yes; enough is what that verdict would call worth it,
a gain beyond its uncertainty. Fewer queries and a larger ε calibrate the noise anew. More
organisations are organisations like these: the same votes in proportion, the same parts of
colluders and dropouts. Less noise in a vote takes fewer votes of each teacher, by models of more
records: where votes are chosen by the rule (choosing_votes.py), each of these changes is looked at
with the votes that the rule chooses under it (`replan`), which is what comes of following the
advice. Where somebody gave the votes, they stay.

More votes of each teacher are not in proportion, since a model of fewer records is worse: they are
tried only where somebody can train such models (`retrain`).
"""

import bisect
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dppp.errors import InputError, UncertifiedError
from dppp.learning.planning import best_noise
from dppp.learning.verdict import (
    LEAST_GAIN,
    OUTSIDER,
    TEACHER,
    Comparison,
    Seen,
    Verdict,
    compare,
    in_percent,
    locally_private,
    plurality,
)
from dppp.privacy.certificate import Certificate, Promise
from dppp.privacy.noise import Noise
from dppp.privacy.trust import Trust

MOST_EPSILON = 64.0
MOST_TIMES_TEACHERS = 100
"""Where two of the searches end: at this ε, and at this many times the organisations."""

_STEPS_PER_DECADE = 20
_STRIDE = 6
"""Steps of the grid from one look to the next, until one is enough: a factor of two."""

_ALL_BY_ONE = Trust(teachers=2, colluders=1, dropouts=0)
"""One honest share: the same noise in total for any number of teachers, to be shared among them."""

Retrain = Callable[[int], Seen]
"""Votes on the same records when every teacher casts this many."""

Replan = Callable[[Noise, int], tuple[int, Seen]]
"""Votes that the rule chooses for this noise and so many teachers: the most of one, and all of them
on the same records. The noise is the sum of the honest shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One number to change, for one kind of asker; no value if none that was tried is enough."""

    asker: str
    change: str
    now: float
    value: float | None
    last_tried: float
    best_tried: float
    """That value; the one that gains the most if none is enough."""
    accuracy_expected: float
    """With the best one tried; where no number of votes was worth trying, without noise."""
    accuracy_without: float
    """What the asker has without the federation, under the same numbers."""
    measure: str = "right"
    """What the accuracies are (verdict.py)."""
    votes: int | None = None
    """Of each teacher, at most, with the best one tried; None where votes are not chosen anew."""
    votes_now: int | None = None

    @property
    def text(self) -> str:
        """For people."""
        figures = (
            f"{in_percent(self.accuracy_expected)} % against {in_percent(self.accuracy_without)} %"
        )
        if self.measure != "right":
            figures += f" {self.measure}"
        if self.value is None and self.last_tried == self.now:
            return (
                f"To {self.asker} more votes would hardly make it worth it: even without noise the "
                f"votes are not clearly better ({figures})."
            )
        if self.value is None:
            what = "ε" if self.change == "epsilon" else f"number of {self.change}"
            return (
                f"To {self.asker} no {what} from {self.now:g} to {self.last_tried:g} makes it "
                f"clearly worth it (at best {figures}, with {self.best_tried:g}{self._with_votes})."
            )
        queries = "1 query" if self.value == 1 else f"at most {self.value:g} queries"
        changed = {
            "queries": f"{queries} instead of {self.now:g}",
            "epsilon": f"ε = {self.value:g} instead of {self.now:g}",
            "teachers": f"{self.value:g} teachers like these instead of {self.now:g}",
            "votes": f"{self.value:g} votes of each teacher instead of {self.now:g}",
        }[self.change]
        return f"To {self.asker} it would be worth it with {changed}{self._with_votes} ({figures})."

    @property
    def _with_votes(self) -> str:
        if self.votes is None or self.votes == self.votes_now:
            return ""
        plural = "" if self.votes == 1 else "s"
        return f", where auto takes {self.votes} vote{plural} of each teacher"

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Setting:
    """What a verdict depends on."""

    held_out: Seen
    promise: Promise
    trust: Trust
    replan: Replan | None = None
    votes_now: int | None = None
    is_hopeless: bool = False
    """Even without noise there is nothing to win, so only the ends of the searches are tried."""

    @property
    def noise(self) -> Noise:
        """Of the honest shares."""
        return best_noise(self.promise, _ALL_BY_ONE).shared_among(self.trust.honest_shares)

    @property
    def votes(self) -> int | None:
        """Those that the rule chooses, the most of one teacher."""
        return self.replan(self.noise, self.trust.teachers)[0] if self.replan else None

    def compare(self, asker: str) -> Comparison:
        """The private answers on average over all noise, beside what the asker has without."""
        noise, seen = self.noise, self.held_out
        if self.replan is not None:
            _, seen = self.replan(noise, self.trust.teachers)
        times = self.trust.teachers / len(seen.votes)
        right, _ = seen.private(noise.of_teachers(self.trust.teachers), times)
        local = locally_private(seen, noise) if asker == OUTSIDER else right
        return compare(asker, seen, right, local)


def advise(
    verdict: Verdict,
    held_out: Seen,
    certificate: Certificate,
    *,
    votes: Sequence[int] = (),
    retrain: Retrain | None = None,
    replan: Replan | None = None,
) -> tuple[Advice, ...]:
    """Advice for each asker to whom it is not worth it; none where it is worth it to both.

    `votes` are the numbers of votes to try with `retrain`, the present number first. Numbers are
    tried upwards, and training ends at the first that is enough. `replan` where the rule chooses
    the votes.
    """
    trained = functools.cache(retrain) if retrain is not None else None
    now = _Setting(held_out=held_out, promise=certificate.promise, trust=certificate.trust)
    anew = replace(now, replan=replan, votes_now=votes[0] if votes else None)
    found: list[Advice | None] = []
    for asker, is_worth_it in (
        (OUTSIDER, verdict.worth_it),
        (TEACHER, verdict.worth_it_to_a_teacher),
    ):
        if is_worth_it:
            continue
        setting = replace(anew, is_hopeless=_is_hopeless(asker, anew))
        found += [_fewer_queries(asker, setting), _larger_epsilon(asker, setting)]
        found.append(_more_teachers(asker, setting))
        if trained is not None and len(votes) > 1:
            found.append(_more_votes(asker, now, votes, trained))
    return tuple(each for each in found if each is not None)


def _fewer_queries(asker: str, now: _Setting) -> Advice | None:
    most = now.promise.queries
    return _first_enough(
        now,
        asker,
        "queries",
        [most, *(count for count in _grid(1, most)[::-1] if count < most)],
        lambda count: replace(now, promise=replace(now.promise, queries=int(count))),
    )


def _larger_epsilon(asker: str, now: _Setting) -> Advice | None:
    least = now.promise.epsilon
    steps = np.geomspace(least, max(least, MOST_EPSILON), _STEPS_PER_DECADE * 2)[1:]
    return _first_enough(
        now,
        asker,
        "epsilon",
        [least, *dict.fromkeys(float(f"{step:.2g}") for step in steps if step > least)],
        lambda epsilon: replace(now, promise=replace(now.promise, epsilon=epsilon)),
    )


def _more_teachers(asker: str, now: _Setting) -> Advice | None:
    trust = now.trust

    def grow(teachers: float) -> _Setting:
        times = teachers / trust.teachers
        return replace(
            now,
            trust=Trust(
                teachers=int(teachers),
                colluders=int(trust.colluders * times),
                dropouts=int(trust.dropouts * times),
            ),
        )

    more = _grid(trust.teachers, MOST_TIMES_TEACHERS * trust.teachers)
    return _first_enough(
        now,
        asker,
        "teachers",
        [trust.teachers, *(count for count in more if count > trust.teachers)],
        grow,
    )


def _more_votes(asker: str, now: _Setting, votes: Sequence[int], retrain: Retrain) -> Advice | None:
    """One after the other: more votes help until their models know too little.

    Each step trains all models anew, so none is tried that cannot be expected to be enough, and
    none after the first that is worse than those before.
    """
    present = now.compare(asker)
    silent = float(plurality(now.held_out).mean())
    if silent < present.accuracy + LEAST_GAIN:
        return _nothing_to_outvote(asker, votes[0], present, silent)
    tried: dict[float, Comparison] = {}
    best = present.gain
    for count in votes[1:]:
        found = tried[count] = replace(now, held_out=retrain(count)).compare(asker)
        if found.is_worth_it:
            return _advice(asker, "votes", votes[0], tried, count)
        if found.gain + found.error < best:
            break
        best = max(best, found.gain)
    return _advice(asker, "votes", votes[0], tried, None)


def _nothing_to_outvote(asker: str, votes: int, present: Comparison, silent: float) -> Advice:
    """More votes outvote noise, and their models know less: without noise there is no more."""
    return Advice(
        asker=asker,
        change="votes",
        now=votes,
        value=None,
        last_tried=votes,
        best_tried=votes,
        accuracy_expected=silent,
        accuracy_without=present.accuracy,
        measure=present.measure,
    )


def _is_hopeless(asker: str, now: _Setting) -> bool:
    """Neither these votes nor those for hardly any noise are better in the clear.

    Trying every step would train models for each, for minutes, to say no in the end.
    """
    quiet = replace(now, promise=replace(now.promise, epsilon=MOST_EPSILON))
    seen = [now.held_out]
    if now.replan is not None and _is_possible(quiet):
        seen.append(now.replan(quiet.noise, now.trust.teachers)[1])
    silent = max(float(plurality(each).mean()) for each in seen)
    without = now.held_out.without()[1]
    if asker == TEACHER:
        without = np.nanmean(now.held_out.alone, axis=0)
    return silent < float(without.mean()) + LEAST_GAIN


def _first_enough(
    now: _Setting,
    asker: str,
    change: str,
    values: Sequence[float],
    setting: Callable[[float], _Setting],
) -> Advice | None:
    """The first value that is enough, from the present one on.

    Not every step helps: less noise also makes one teacher's noisy votes better. So this looks at
    values about a factor of two apart until one is enough, then between that and the one before.
    """
    if len(values) < 2:  # no way to go from here
        return None
    if now.is_hopeless:
        values = (values[0], values[-1])
    tried: dict[float, Comparison] = {}

    def is_enough(place: int) -> bool:
        value = values[place]
        tried[value] = setting(value).compare(asker)
        return tried[value].is_worth_it

    def tell(value: float | None) -> Advice | None:
        found = _advice(asker, change, values[0], tried, value)
        chosen = setting(found.best_tried).votes if found else None
        return found and replace(found, votes=chosen, votes_now=now.votes_now)

    low, last = 0, len(values) - 1
    for high in (*range(_STRIDE, last, _STRIDE), last):
        if not _is_possible(setting(values[high])):
            break
        if is_enough(high):
            first = bisect.bisect_left(range(low + 1, high), True, key=is_enough) + low + 1
            return tell(values[first])
        low = high
    return tell(None)


def _advice(
    asker: str, change: str, now: float, tried: dict[float, Comparison], value: float | None
) -> Advice | None:
    """Nothing to say where nothing could be tried; the best that was tried if none is enough."""
    if not tried:
        return None
    shown = max(tried, key=lambda each: tried[each].gain) if value is None else value
    found = tried[shown]
    return Advice(
        asker=asker,
        change=change,
        now=now,
        value=value,
        last_tried=list(tried)[-1] if value is None else value,
        best_tried=shown,
        accuracy_expected=found.accuracy + found.gain,
        accuracy_without=found.accuracy,
        measure=found.measure,
    )


def _is_possible(setting: _Setting) -> bool:
    try:
        best_noise(setting.promise, _ALL_BY_ONE)
    except (UncertifiedError, InputError):
        return False
    return True


def _grid(least: int, most: int) -> list[int]:
    """Whole numbers of two digits from `least` to `most`, ends included."""
    decades = max(1e-9, np.log10(most / least))
    steps = np.geomspace(least, most, int(decades * _STEPS_PER_DECADE) + 2)
    return sorted({least, most, *(int(float(f"{step:.2g}")) for step in steps)})
