"""The real mode: what the adversary works out from real releases is honest noise and the move.

Faults are planted into the code that a deployment runs. Teachers draw from a seed, so each test
gives the same numbers in every run.
"""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from tests.small_federation import kept_certificate

from dppp.experiments.audit import roles
from dppp.experiments.audit.game import Moves
from dppp.experiments.audit.promise import PromiseAudit, audit_promise
from dppp.experiments.audit.roles import ThroughTheRoles
from dppp.learning.shards import Shard, make_shards, train_shard
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise, Polya
from dppp.privacy.sampling import sampling_table
from dppp.protocol.question import Question
from dppp.protocol.teacher import Teacher
from dppp.randomness import KeyStream

WORLDS = np.array([False, True, True, False])
COLLUDER = 4
"""The last of four teachers; one more may vanish, so two honest shares are in every count."""


def certificate_of(queries: int) -> Certificate:
    return kept_certificate(
        "polya", epsilon=0.5, delta=1e-5, teachers=4, dropouts=1, queries=queries, classes=2
    )


@pytest.mark.parametrize(
    "question",
    [
        {"classes": 3},
        {"classes": 5, "max_labels": 2},
        {"classes": 3, "max_labels": 2},
        {"levels": 100},
    ],
)
@pytest.mark.parametrize("noise", ["skellam", "binomial"])
def test_without_noise_to_speak_of_only_the_move_is_left(
    noise: str, question: dict[str, Any]
) -> None:
    """Of 6 teachers one colludes and one is missing; all that is known is taken off."""
    certificate = calibrate(
        noise, epsilon=30, delta=0.5, teachers=6, dropouts=1, queries=3, **question
    )
    change = certificate.promise.change
    moves = Moves(counts=change.moved, by=change.shift)
    play = ThroughTheRoles.of(certificate, moves, randomness=seeded_stream())
    assert play.question.change(certificate.promise.classes) == change
    seen = play(WORLDS) - certificate.noise.sum_of_centres(certificate.trust.honest_shares)
    spread = 4 * np.sqrt(certificate.noise.variance) + 1
    assert np.abs(seen - np.outer(WORLDS, moves.shifts(3))).max() <= spread


def test_games_in_one_federation_are_those_in_many() -> None:
    """Votes of every teacher, moves and lists are where they were, however games are packed."""
    certificate = replace(
        kept_certificate("skellam", epsilon=30, delta=0.5, teachers=4, queries=2, classes=2),
        votes=(3, 1, 2, 5),
        unit="record",
    )
    whole = ThroughTheRoles.of(certificate, Moves(), randomness=seeded_stream())
    single = replace(whole, games=1, of_all=certificate)
    assert whole.games > 1
    for play in (whole, single):
        gap = play(WORLDS) - np.outer(WORLDS, Moves().shifts(2))
        assert np.abs(gap).max() <= 4 * np.sqrt(certificate.noise.variance) + 1


def test_the_question_of_a_task_is_played_as_it_is() -> None:
    certificate = calibrate("skellam", epsilon=8, delta=1e-2, teachers=4, levels=10)
    question = Question.of_number(low=-5, high=5, levels=10)
    found = attacked(certificate, 40, question=question)
    assert not found.is_certificate_refuted


@pytest.mark.parametrize("question", [{"classes": 6, "max_labels": 2}, {"levels": 20}])
def test_labels_and_numbers_are_attacked_through_the_roles(question: dict[str, Any]) -> None:
    certificate = calibrate("skellam", epsilon=3, delta=0.1, teachers=4, queries=2, **question)
    found = attacked(certificate, 300)
    assert found.epsilon_certified is not None
    assert found.attack.epsilon_lower > 0.1
    assert not found.is_certificate_refuted


def test_honest_roles_are_not_refuted_and_something_is_proved() -> None:
    found = attacked(certificate_of(queries=1), 2_000)
    assert found.attack.epsilon_lower > 0.1
    assert not found.is_certificate_refuted


def honest_teachers_draw(monkeypatch: pytest.MonkeyPatch, noise: Noise) -> None:
    """Planted fault: shares of other noise, in the range of the right one."""
    honest = Teacher._with_noise

    def faulty(self: Teacher, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.index == COLLUDER:
            return honest(self, votes)
        shares = sampling_table(noise).draw(votes.size) - sampling_table(self.task.noise).lowest
        return votes.ravel() + shares

    monkeypatch.setattr(Teacher, "_with_noise", faulty)


def polya(certificate: Certificate) -> Polya:
    assert isinstance(certificate.noise, Polya)
    return certificate.noise


def attacked(certificate: Certificate, games: int, **options: Any) -> PromiseAudit:
    return audit_promise(
        certificate, mode="real", trials=games, randomness=seeded_stream(), **options
    )


def seeded_stream() -> KeyStream:
    return KeyStream(hashlib.sha256(b"through the roles").digest())


@pytest.mark.attack
def test_shares_sized_for_all_teachers_are_caught_through_the_roles(monkeypatch) -> None:
    certificate = certificate_of(queries=1)
    honest_teachers_draw(monkeypatch, polya(certificate).shared_among(4))
    assert attacked(certificate, 4_000).is_certificate_refuted


@pytest.mark.attack
def test_half_the_variance_is_caught_through_the_roles(monkeypatch) -> None:
    certificate = certificate_of(queries=1)
    noise = polya(certificate)
    # q / (1 - q)² is the variance by twice the shape; solved for q where that is half.
    half = noise.variance / noise.shape / 4
    ratio = (2 * half + 1 - np.sqrt(4 * half + 1)) / (2 * half)
    smaller = Polya(shape=noise.shape, ratio=float(ratio), shares=noise.shares)
    assert smaller.variance == pytest.approx(noise.variance / 2)
    honest_teachers_draw(monkeypatch, smaller)
    assert attacked(certificate, 20_000).is_certificate_refuted


@pytest.mark.attack
def test_a_class_without_noise_is_caught_through_the_roles(monkeypatch) -> None:
    """Planted fault: honest teachers forget the noise of the first class."""
    honest = Teacher._with_noise

    def faulty(self: Teacher, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        entries = honest(self, votes)
        if self.index != COLLUDER:
            entries[::2] = votes.ravel()[::2] - sampling_table(self.task.noise).lowest
        return entries

    monkeypatch.setattr(Teacher, "_with_noise", faulty)
    found = attacked(certificate_of(queries=2), 500)
    assert found.is_certificate_refuted
    assert found.attack.statistic.startswith("learned")


@pytest.mark.attack
def test_the_same_noise_in_two_lists_is_caught_through_the_roles(monkeypatch) -> None:
    """Planted fault: an honest teacher that opens a second list draws no fresh noise for it."""
    honest = Teacher._with_noise
    kept: dict[Teacher, NDArray[np.int64]] = {}

    def faulty(self: Teacher, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.index == COLLUDER:
            return honest(self, votes)
        noise = kept.setdefault(self, honest(self, np.zeros_like(votes)))
        return votes.ravel() + noise

    monkeypatch.setattr(Teacher, "_with_noise", faulty)
    found = attacked(certificate_of(queries=2), 500)
    assert found.is_certificate_refuted
    assert "counts" in found.attack.statistic


def with_shards(monkeypatch: pytest.MonkeyPatch, *, is_shared: bool) -> Certificate:
    """The canary trains four models by the product's own shards; one record is what moves."""

    def shards_of(label: int) -> tuple[Shard, ...]:
        rows = np.arange(40.0).reshape(-1, 1)
        labels = np.array([label] + [0] * 39)
        shards = make_shards(rows, labels, ids=None, votes=4, key=b"canary")
        if not is_shared:
            return shards
        return tuple(
            replace(
                each,
                rows=np.concatenate((rows[:1], each.rows)),
                labels=np.concatenate((labels[:1], each.labels)),
            )
            for each in shards
        )

    def trained(votes: int, stays: int, goes: int, is_there: NDArray[np.bool_]) -> list[Any]:
        pairs = [
            [
                train_shard(KNeighborsClassifier(1), shard).predict([[0.0]])[0]
                for shard in shards_of(label)
            ]
            for label in (stays, goes)
        ]
        assert len(pairs[0]) == votes
        return [
            lambda rows, said=said: [said[int(is_there[int(row[0])])] for row in rows]
            for said in zip(*pairs, strict=True)
        ]

    monkeypatch.setattr(roles, "canary_models", trained)
    return replace(certificate_of(queries=1), votes=(4, 1, 1, 1), unit="record")


@pytest.mark.attack
def test_a_record_in_all_shards_is_caught_through_the_roles(monkeypatch) -> None:
    certificate = with_shards(monkeypatch, is_shared=True)
    assert attacked(certificate, 2_000).is_certificate_refuted


def test_a_record_in_one_shard_moves_one_vote(monkeypatch) -> None:
    certificate = with_shards(monkeypatch, is_shared=False)
    found = attacked(certificate, 2_000)
    assert found.attack.epsilon_lower > 0.1
    assert not found.is_certificate_refuted
