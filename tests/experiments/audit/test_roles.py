"""The real mode: what the adversary works out from real releases is honest noise and the move."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.small_federation import kept_certificate

from dppp.experiments.audit.game import Moves
from dppp.experiments.audit.promise import audit_promise
from dppp.experiments.audit.roles import ThroughTheRoles
from dppp.privacy.sampling import sampling_table
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import sum_votes

WORLDS = np.array([False, True, True, False])


@pytest.mark.parametrize("noise", ["polya", "binomial"])
def test_without_noise_to_speak_of_only_the_move_is_left(noise: str) -> None:
    """Of 6 teachers one colludes and one is missing; all that is known is taken off."""
    certificate = kept_certificate(
        noise, epsilon=30, delta=0.5, teachers=6, dropouts=1, queries=3, classes=3
    )
    play = ThroughTheRoles(certificate=certificate, directions=[1, -1, 1])
    seen = play(WORLDS) - certificate.noise.sum_of_centres(certificate.trust.honest_shares)
    spread = 3 * np.sqrt(certificate.noise.variance) + 1
    assert np.abs(seen - np.outer(WORLDS, Moves().shifts(3))).max() <= spread < 6


def test_a_class_without_noise_is_caught_through_the_roles(monkeypatch) -> None:
    """Planted fault: honest teachers forget the noise of the first class."""
    certificate = kept_certificate(
        "skellam", epsilon=1, delta=1e-5, teachers=4, queries=2, classes=2
    )
    honest = Teacher._entries

    def faulty(self: Teacher, inputs: object) -> NDArray[np.int64]:
        entries = honest(self, inputs)  # type: ignore[arg-type]
        if self.index < 4:
            votes = sum_votes(self._models, inputs, 2).ravel()
            entries[::2] = votes[::2] - sampling_table(self.task.noise).lowest
        return entries

    monkeypatch.setattr(Teacher, "_entries", faulty)
    found = audit_promise(certificate, mode="real", trials=90)
    assert found.is_certificate_refuted


def test_honest_roles_are_not_refuted() -> None:
    certificate = kept_certificate(
        "skellam", epsilon=1, delta=1e-5, teachers=4, queries=2, classes=2
    )
    found = audit_promise(certificate, mode="real", trials=20)
    assert not found.is_certificate_refuted
    assert found.attack.counted < found.attack.trials == 20
