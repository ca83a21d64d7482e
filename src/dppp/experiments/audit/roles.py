"""The real mode: games through the real roles, under masks, in whole batches.

A federation answers the queries of many games at once, each on rows of its own: noise is fresh in
every query, so games in one batch are as good as games in many, and cost a hundredth. The first
half of each game's queries is in one list of ballots and the rest in a second one. The first
teacher's vote is moved, or not; the other honest teachers vote alike always; D teachers never
answer; the last C collude with the adversary. They keep the bytes that their noise was drawn from,
and draw it again. What is audited is what runs in a deployment: voting, sampling, sealing, opening
and the release.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dppp.errors import UncertifiedError
from dppp.experiments.audit.game import Moves, Seen, Worlds
from dppp.federation import Federation, Parties, create_federation, in_process
from dppp.privacy.accounting import account
from dppp.privacy.certificate import Certificate, Promise, issue_certificate
from dppp.privacy.change import ONE_OF_CLASSES
from dppp.privacy.sampling import sampling_table
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.votes import Predict, cast_votes
from dppp.randomness import RandomSource, system_randomness

_CANARY = 1
"""The teacher of whose votes one moves."""
_MOST_QUERIES = 8_192
"""Of all games of a federation together."""


@dataclass(slots=True, kw_only=True)
class Colluder:
    """A teacher's randomness and models in one hand: what is drawn after the votes is the noise."""

    answer: object
    source: RandomSource
    noise: list[bytes] = field(default_factory=list, repr=False)
    _has_voted: bool = False

    def randomness(self, count: int) -> bytes:
        """As any teacher's; the bytes of the noise of each list are kept."""
        drawn = self.source(count)
        if self._has_voted:
            self.noise.append(drawn)
            self._has_voted = False
        return drawn

    def predict(self, rows: Any) -> list[object]:
        """Votes like all others."""
        self._has_voted = True
        return [self.answer] * len(rows)

    def shares(self, certificate: Certificate, sizes: Sequence[int]) -> NDArray[np.int64]:
        """The noise shares of its ballots, in lists of these many queries: queries by counts."""
        table = sampling_table(certificate.noise)
        counts = certificate.promise.classes
        drawn = [
            table.draw(size * counts, lambda _, kept=kept: kept)  # type: ignore[misc]
            for size, kept in zip(sizes, self.noise, strict=True)
        ]
        return np.concatenate(drawn).reshape(-1, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughTheRoles:
    """Plays this many games at a time by a federation of their own, with ledgers in memory.

    `certificate` is that of one game, `of_all` that of all games of a federation, and `moves` what
    the question lets one vote do.
    """

    certificate: Certificate
    of_all: Certificate
    question: Question
    moves: Moves
    games: int
    randomness: RandomSource = system_randomness
    """Of all teachers; tests give one that they can repeat."""

    @classmethod
    def of(
        cls,
        certificate: Certificate,
        moves: Moves,
        question: Question | None = None,
        *,
        randomness: RandomSource = system_randomness,
    ) -> Self:
        """As many games at a time as one task can hold; by default the promise's own question."""
        games, of_all = for_many_games(certificate)
        return cls(
            certificate=certificate,
            of_all=of_all,
            question=question or question_of(certificate.promise),
            moves=moves,
            games=games,
            randomness=randomness,
        )

    def __call__(self, worlds: Worlds) -> Seen:
        """Honest noise and moves, as the adversary works them out from each release."""
        starts = range(0, len(worlds), self.games)
        return np.concatenate([self._play(worlds[at : at + self.games]) for at in starts])

    def _play(self, worlds: Worlds) -> Seen:
        certificate, trust = self.certificate, self.certificate.trust
        stays, goes = answers_of(self.question, self.moves)
        first_colluder = trust.teachers - trust.colluders + 1
        colluders = {
            index: Colluder(answer=stays, source=self.randomness)
            for index in range(first_colluder, trust.teachers + 1)
        }
        # In every second query the vote moves back.
        turned = np.arange(certificate.promise.queries) % 2 == 1
        is_there = worlds[:, np.newaxis] != turned
        canary = canary_models(self._votes_of(_CANARY), stays, goes, is_there.ravel())
        parties = self._make_parties(canary, colluders)
        present = {
            index: teacher
            for index, teacher in parties.teachers.items()
            if not _CANARY < index <= _CANARY + trust.dropouts
        }
        federation = Federation(aggregator=parties.aggregator, deliver=in_process(present))
        lists = _lists_of(is_there)
        counts = np.concatenate([_ask(federation, rows) for rows in lists])
        # Off with all that the adversary knows: offset, the others' votes, the colluders' noise,
        # and where the canary's vote is in world 0.
        counts += certificate.noise.sum_of_centres(len(present))
        counts -= (parties.task.votes_of(list(present)) - 1) * self._counts_of(stays)
        for colluder in colluders.values():
            counts -= colluder.shares(certificate, [len(rows) for rows in lists])
        by_game = counts[np.argsort(np.concatenate(lists))].reshape(*is_there.shape, -1)
        before = np.where(turned[:, np.newaxis], self._counts_of(goes), self._counts_of(stays))
        seen: Seen = (by_game - before)[:, :, : self.moves.counts]
        return seen.reshape(len(worlds), -1)

    def _counts_of(self, answer: object) -> NDArray[np.int64]:
        """What this answer of a model adds to the counts, by the product's own reading of it."""
        classes = self.certificate.promise.classes
        votes = cast_votes(lambda _: [answer], [0], classes, question=self.question)
        return np.asarray(votes[0])

    def _votes_of(self, teacher: int) -> int:
        return self.certificate.votes[teacher - 1] if self.certificate.votes else 1

    def _make_parties(
        self, canary: Sequence[Predict], colluders: Mapping[int, Colluder]
    ) -> Parties:
        certificate = self.of_all
        stays, _ = answers_of(self.question, self.moves)
        models: dict[int, Sequence[Predict]] = {}
        for index in range(1, certificate.trust.teachers + 1):
            predict = colluders[index].predict if index in colluders else _always(stays)
            models[index] = [predict] * self._votes_of(index)
        models[_CANARY] = canary
        sources = dict.fromkeys(models, self.randomness)
        sources |= {index: colluder.randomness for index, colluder in colluders.items()}
        return create_federation(
            name="audit",
            class_names=[f"count {number}" for number in range(certificate.promise.classes)],
            features=["row"],
            certificate=certificate,
            models=list(models.values()),
            cryptosystem="masks",
            unit=certificate.unit,
            randomness=sources,
            question=self.question,
        )


def question_of(promise: Promise) -> Question:
    """A question in which one vote can do just what the promise says."""
    change = promise.change
    if promise.classes == 1:
        return Question.of_number(low=0, high=1, levels=change.shift)
    if change == ONE_OF_CLASSES:
        return CHOICE
    return Question.of_labels(most_labels=-(-change.moved // 2))


def answers_of(question: Question, moves: Moves) -> tuple[Any, Any]:
    """What a model says where its vote stays, and where it goes: the most that a vote can move."""
    if question.kind == "number":
        return question.low, question.high
    if question.kind == "choice":
        return 0, 1
    down = moves.counts // 2
    return list(range(down)), list(range(down, moves.counts))


def canary_models(
    votes: int, stays: Any, goes: Any, is_there: NDArray[np.bool_]
) -> Sequence[Predict]:
    """The canary's models: one changes its mind on these rows, and the others vote like all."""

    def moved(rows: Any) -> list[Any]:
        return [goes if is_there[int(row[0])] else stays for row in rows]

    return [moved, *[_always(stays)] * (votes - 1)]


def for_many_games(certificate: Certificate) -> tuple[int, Certificate]:
    """How many games one task can hold, and what the same noise delivers over all their queries.

    A task has to be certified for some ε. That of all games is no promise to anybody: each game is
    held against the certificate of its own queries.
    """
    games = max(1, _MOST_QUERIES // certificate.promise.queries)
    while games > 1:
        try:
            found = _over_all(certificate, games * certificate.promise.queries)
        except UncertifiedError:
            found = None
        if found is not None and found.certified:
            return games, replace(found, unit=certificate.unit, votes=certificate.votes)
        games //= 2
    return 1, certificate


def _over_all(certificate: Certificate, queries: int) -> Certificate:
    epsilon = account([certificate.spending(queries)], certificate.promise.delta)
    rounded = math.ceil(1000 * epsilon + 1) / 1000
    return issue_certificate(
        certificate.noise,
        replace(certificate.promise, queries=queries, epsilon=rounded),
        certificate.trust,
        calibration=certificate.calibration,
    )


def _lists_of(games: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Row numbers (game by game, query by query) in two lists: halves of each game."""
    rows = np.arange(games.size).reshape(games.shape)
    half = (games.shape[1] + 1) // 2
    return [part.ravel() for part in (rows[:, :half], rows[:, half:]) if part.size]


def _ask(federation: Federation, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    outcome = federation.ask([[float(row)] for row in rows])
    return np.array([answer.counts for answer in outcome.answers], dtype=np.int64)


def _always(answer: Any) -> Predict:
    return lambda rows: [answer] * len(rows)
