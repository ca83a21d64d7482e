"""Verdicts of a fitted estimator: from held-out records, or from what it was trained on.

Everything here looks at votes in the clear. The estimator runs a whole federation in one process,
where that is possible; in a deployment nobody can, and a teacher's warning there would tell others
something of its records.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, NotWorthItWarning, message_of
from dppp.learning.advice import advise
from dppp.learning.asked import Asked
from dppp.learning.choosing_votes import votes_for_noise, votes_for_records
from dppp.learning.clear_votes import Origin, look, look_back
from dppp.learning.frames import take
from dppp.learning.number_verdict import NumbersHeldOut
from dppp.learning.one_thread import one_thread
from dppp.learning.shards import NoVote
from dppp.learning.tables import Table
from dppp.learning.teachers_records import TeachersRecords, Voting
from dppp.learning.verdict import Seen, Verdict, judge
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise
from dppp.protocol.votes import Predict

_MOST_LOOKED_BACK = 200
"""Training records that `fit` looks at before it warns: enough to tell useless from useful."""

_MOST_JUDGED = 1_000
"""Training records behind `verdict_`."""

_VOTES_TRIED = (2, 5, 10, 20, 50, 100)
Votes = tuple[int, ...]
"""Of each teacher."""

_LEAST_RECORDS = 5
"""Of a shard on average: advice tries no more votes than leave a teacher's models this many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """What the models were trained on, kept for verdicts only; never leaves the process."""

    table: Table
    """How rows travel to the models."""
    records: TeachersRecords
    places: NDArray[np.int64]
    """Which of its teacher's models saw each record."""
    asked: Asked
    alone: tuple[Any, ...]
    """Every teacher's own model, trained on all its records."""
    votes: tuple[int, ...]
    """Of each teacher."""
    can_split: bool
    """Whether a teacher may cast more than one vote under this promise."""
    is_automatic: bool
    """Whether the rule chose the votes, and so would choose others under other noise."""

    def predicts(self, models: Sequence[Sequence[Any]]) -> list[list[Predict]]:
        """What a teacher asks for votes, for each model of each teacher."""
        return [[self._predict_of(model) for model in voting] for voting in models]

    @one_thread
    def require_voters(self, models: Sequence[Sequence[Any]]) -> None:
        """Refuse a model that cannot answer its own training records with classes of the task."""
        records = self.records
        for teacher, voting in enumerate(models):
            mine = records.owners == teacher
            name = f"teacher {teacher + 1}"
            rows = take(records.rows, np.flatnonzero(mine))
            _require_voter(self.alone[teacher], rows, self.asked, name)
            for place, model in enumerate(voting if len(voting) > 1 else ()):
                if not isinstance(model, NoVote):
                    rows = take(records.rows, np.flatnonzero(mine & (self.places == place)))
                    _require_voter(model, rows, self.asked, f"{name} for its vote {place + 1}")

    def judge(
        self,
        voters: Sequence[Sequence[Predict]],
        certificate: Certificate,
        rows: Any,
        labels: NDArray[Any],
    ) -> Verdict:
        """From records that nobody trained on."""

        def see_with(votes: Votes) -> Seen:
            return self.look(self.predicts(self._deal_again(votes).models), rows, labels)

        return self._with_advice(self.look(voters, rows, labels), certificate, see_with)

    def look(self, voters: Sequence[Sequence[Predict]], rows: Any, labels: NDArray[Any]) -> Seen:
        """What the models say of records that nobody trained on."""
        truth = self.asked.truth_of(labels)
        return look(voters, self._own, rows, truth, asked=self.asked, usual=self._usual)

    def judge_back(self, voters: Sequence[Sequence[Predict]], certificate: Certificate) -> Verdict:
        """From the training records."""

        def see_with(votes: Votes) -> Seen:
            dealt = self._deal_again(votes)
            return self.look_back(
                self.predicts(dealt.models), dealt.places, self._own, _MOST_JUDGED
            )

        seen = self.look_back(voters, self.places, self._own, _MOST_JUDGED)
        return self._with_advice(seen, certificate, see_with)

    def look_back(
        self,
        voters: Sequence[Sequence[Predict]],
        places: NDArray[np.int64],
        own: Sequence[Predict],
        most: int,
    ) -> Seen:
        """At up to `most` training records, spread evenly over the table."""
        records = self.records
        chosen = np.unique(np.linspace(0, len(records.labels) - 1, most).astype(np.int64))
        return look_back(
            voters,
            own,
            take(records.rows, chosen),
            self._truth[chosen],
            origin=Origin(teachers=records.owners[chosen], models=places[chosen]),
            asked=self.asked,
            usual=self._usual,
        )

    def _predict_of(self, model: object) -> Predict:
        return self.table.predict_by(self.asked.predict_of(model))

    @property
    def _own(self) -> list[Predict]:
        return [self._predict_of(model) for model in self.alone]

    @property
    def _truth(self) -> NDArray[Any]:
        return self.asked.truth_of(self.records.labels)

    @property
    def _usual(self) -> Any:
        return self.asked.usual_of(self._truth)

    def _with_advice(
        self, seen: Seen, certificate: Certificate, see_with: Callable[[Votes], Seen]
    ) -> Verdict:
        """The verdict, with what would make it better where it is bad."""
        verdict = judge(seen, certificate)
        see_again = functools.cache(see_with)

        def retrain(votes: int) -> Seen:
            return see_again(self._more_votes(votes))

        def replan(noise: Noise, teachers: int) -> tuple[int, Seen]:
            votes = self._votes_by_rule(noise, teachers)
            return max(votes), seen if votes == self.votes else see_again(votes)

        most = max(self.records.sizes) // _LEAST_RECORDS if self.can_split else 0
        now = max(self.votes)
        more = [count for count in _VOTES_TRIED if now < count <= most]
        advice = advise(
            verdict,
            seen,
            certificate,
            votes=(now, *more),
            retrain=retrain,
            replan=replan if self.is_automatic and self.can_split else None,
        )
        scale = seen.scale if isinstance(seen, NumbersHeldOut) else None
        return replace(verdict, advice=advice, scale=scale)

    def _more_votes(self, votes: int) -> Votes:
        """So many of each teacher, or as many as its records allow."""
        return tuple(
            max(now, min(votes, size // _LEAST_RECORDS))
            for now, size in zip(self.votes, self.records.sizes, strict=True)
        )

    def _votes_by_rule(self, noise: Noise, teachers: int) -> Votes:
        """Of each of these teachers, where so many like them share this noise."""
        question = self.asked.question
        wanted = votes_for_noise(noise, teachers, question)
        return votes_for_records(wanted, self.records.sizes, self.asked.counts, question)

    def _deal_again(self, votes: Votes) -> Voting:
        return self.records.train_votes(votes, self.alone)


def warn_if_not_worth_it(
    training: Training, voters: Sequence[Sequence[Predict]], certificate: Certificate
) -> None:
    """Warn where an outsider clearly has as much without the federation, or more.

    From the votes on some training records, each without the model that saw it; `verdict_` says
    more, and takes longer.
    """
    held_out = training.look_back(voters, training.places, (), _MOST_LOOKED_BACK)
    outsider = judge(held_out, certificate).outsider
    if outsider.is_clear and not outsider.is_worth_it:
        warnings.warn(
            f"{outsider.sentence} See verdict_ for what would make it so.",
            NotWorthItWarning,
            stacklevel=3,
        )


def _require_voter(model: object, rows: Any, asked: Asked, teacher: str) -> None:
    name = f"the model of {teacher} ({type(model).__name__})"
    wanted = {
        "choice": ("class", "classifier", "the classes of y"),
        "labels": ("labels", "classifier", "a row of zeros and ones, as y has them"),
        "number": ("number", "regressor", "a number"),
    }
    what, kind, answer = wanted[asked.question.kind]
    hint = f"give a {kind} whose predict answers with {answer}"
    try:
        answers = list(asked.predict_of(model)(rows))
    except Exception as error:
        raise InputError(
            f"{name} cannot predict the records that it was trained on: "
            f"{type(error).__name__}: {message_of(error)}",
            hint=hint,
        ) from error
    if len(answers) != rows.shape[0]:
        raise InputError(
            f"{name} gives {len(answers)} answers for {rows.shape[0]} records",
            hint=f"{hint}, one for each row",
        )
    if asked.question.kind == "number" and any(
        isinstance(each, str) or not np.isscalar(each) for each in answers if each is not None
    ):
        raise InputError(f"{name} answers with something that is not a number", hint=hint)
    if all(answer is None for answer in answers):
        raise InputError(
            f"{name} knows no {what}: it has no answer for any record that it was trained on",
            hint=hint,
        )
