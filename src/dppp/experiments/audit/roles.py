"""The real mode: every trial is a whole batch through the real roles, under masks.

A federation votes on all T queries. The first teacher's vote is moved, or not; the other honest
teachers vote for the same class always; D teachers never answer; the last C collude with the
adversary. They keep the bytes that their noise was drawn from, and draw it again. What is audited
is what runs in a deployment: voting, sampling, sealing, opening and the release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.audit.game import Seen, Worlds
from dppp.federation import Federation, Parties, create_federation, in_process
from dppp.privacy.certificate import Certificate
from dppp.privacy.sampling import sampling_table
from dppp.protocol.votes import Predict
from dppp.randomness import system_randomness

_CANARY = 1
"""The teacher whose vote moves."""
_FROM, _TO = 0, 1


@dataclass(slots=True, kw_only=True)
class Colluder:
    """A teacher's randomness and model in one hand: what is drawn after the votes is the noise."""

    noise: bytes = field(default=b"", repr=False)
    _has_voted: bool = False

    def randomness(self, count: int) -> bytes:
        """The system's; the bytes of the noise are kept."""
        drawn = system_randomness(count)
        if self._has_voted:
            self.noise, self._has_voted = drawn, False
        return drawn

    def predict(self, rows: Any) -> list[int]:
        """Votes like all others."""
        self._has_voted = True
        return _vote_alike(rows)

    def shares(self, certificate: Certificate) -> NDArray[np.int64]:
        """The noise shares that it drew for a ballot on all queries: queries by classes."""
        shape = certificate.promise.queries, certificate.promise.classes
        table = sampling_table(certificate.noise)
        return table.draw(shape[0] * shape[1], lambda _: self.noise).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughTheRoles:
    """Plays each trial by a federation of its own, with ledgers in memory.

    `directions` says of each query whether a moved vote goes there (1) or back (-1).
    """

    certificate: Certificate
    directions: Sequence[int]

    def __call__(self, worlds: Worlds) -> Seen:
        """Honest noise and moves, as the adversary works them out from each release."""
        return np.stack([self._trial(is_moved=bool(world)) for world in worlds])

    def _trial(self, *, is_moved: bool) -> NDArray[np.int64]:
        certificate = self.certificate
        trust, promise = certificate.trust, certificate.promise
        first = trust.teachers - trust.colluders + 1
        colluders = {index: Colluder() for index in range(first, trust.teachers + 1)}
        parties = _make_parties(certificate, self._votes(is_moved=is_moved), colluders)
        present = {
            index: teacher
            for index, teacher in parties.teachers.items()
            if not _CANARY < index <= _CANARY + trust.dropouts
        }
        federation = Federation(aggregator=parties.aggregator, deliver=in_process(present))
        outcome = federation.ask([[float(query)] for query in range(promise.queries)])
        counts = np.array([answer.counts for answer in outcome.answers], dtype=np.int64)
        # Off with all that the adversary knows: offset, the others' votes, the colluders' noise.
        counts += certificate.noise.sum_of_centres(len(present))
        counts[:, _FROM] -= len(present) - 1
        for colluder in colluders.values():
            counts -= colluder.shares(certificate)
        counts -= _unmoved(self.directions, promise.classes)
        return counts[:, [_FROM, _TO]].ravel()

    def _votes(self, *, is_moved: bool) -> list[int]:
        """The canary's vote in each query."""
        stays = [_FROM if direction > 0 else _TO for direction in self.directions]
        return [_FROM + _TO - vote for vote in stays] if is_moved else stays


def _unmoved(directions: Sequence[int], classes: int) -> NDArray[np.int64]:
    """The canary's votes in world 0."""
    votes = np.zeros((len(directions), classes), dtype=np.int64)
    votes[np.arange(len(directions)), [_FROM if each > 0 else _TO for each in directions]] = 1
    return votes


def _vote_alike(rows: Any) -> list[int]:
    return [_FROM] * len(rows)


def _make_parties(
    certificate: Certificate, votes: Sequence[int], colluders: Mapping[int, Colluder]
) -> Parties:
    def canary(rows: Any) -> list[int]:
        return [votes[int(row[0])] for row in rows]

    teachers = range(1, certificate.trust.teachers + 1)
    models: dict[int, Predict] = dict.fromkeys(teachers, _vote_alike)
    models[_CANARY] = canary
    models |= {index: colluder.predict for index, colluder in colluders.items()}
    return create_federation(
        name="audit",
        class_names=[f"class {number}" for number in range(certificate.promise.classes)],
        features=["query"],
        certificate=certificate,
        models=list(models.values()),
        cryptosystem="masks",
        randomness={index: colluder.randomness for index, colluder in colluders.items()},
    )
