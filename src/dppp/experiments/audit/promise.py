"""The audit of a promise as a whole: the game, how it is played, and the verdict beside the claim.

Used by `dppp audit`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dppp.errors import InputError, UncertifiedError
from dppp.experiments.audit.attack import Attack, OnProgress, attack
from dppp.experiments.audit.bound import CONFIDENCE
from dppp.experiments.audit.game import DrawnFromMasses, Game, Moves, Play
from dppp.experiments.audit.roles import ThroughTheRoles
from dppp.privacy.accounting import Spending, account
from dppp.privacy.certificate import Certificate
from dppp.privacy.change import Change

MODES = ("fast", "real")

_DRAWS = 400_000_000
"""Noisy counts that a fast audit draws if it is not told how many trials to play."""
_MOST_TRIALS, _FEWEST_TRIALS = 20_000_000, 100_000
_REAL_TRIALS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAudit:
    """What an attack shows of ε, beside what the certificate says of it.

    `epsilon_certified` is what our accountant certifies for this noise at the promised δ; None if
    that is past all use.
    """

    certificate: Certificate
    epsilon_certified: float | None
    attack: Attack
    mode: str
    moves: Moves

    @property
    def is_promise_refuted(self) -> bool:
        """Whether more is spent than was promised."""
        return self.attack.epsilon_lower > self.certificate.promise.epsilon

    @property
    def is_certificate_refuted(self) -> bool:
        """Whether more is spent than the accountant says: a fault in it, or in the noise."""
        certified = self.epsilon_certified
        return certified is not None and self.attack.epsilon_lower > certified

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        found = self.attack
        return {
            "epsilon_lower": found.epsilon_lower,
            "epsilon_certified": self.epsilon_certified,
            "confidence": found.confidence,
            "trials": found.trials,
            "mode": self.mode,
            "is_promise_refuted": self.is_promise_refuted,
            "is_certificate_refuted": self.is_certificate_refuted,
            "counted": found.counted,
            "right": found.right,
            "wrong": found.wrong,
            "statistic": found.statistic,
            "counts_moved": self.moves.counts,
            "moved_by": self.moves.by,
            "certificate": self.certificate.to_json(),
        }


def trials_for(mode: str, *, queries: int, moves: Moves) -> int:
    """How many trials a minute or so allows."""
    if mode == "real":
        return _REAL_TRIALS
    return max(_FEWEST_TRIALS, min(_MOST_TRIALS, _DRAWS // (queries * moves.counts)))


def audit_promise(
    certificate: Certificate,
    *,
    mode: str = "fast",
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 1,
    moves: Moves | None = None,
    planted: Callable[[Play], Play] = lambda play: play,
    report: OnProgress = lambda *_: None,
) -> PromiseAudit:
    """Attack the noise of this certificate; `planted` may put a fault into what is played."""
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}", hint="choose fast or real")
    if not 0.5 <= confidence < 1:
        raise InputError(
            f"the confidence must be at least 0.5 and below 1, got {confidence}", hint="try 0.95"
        )
    promise = certificate.promise
    move = moves or Moves(counts=promise.change.moved, by=promise.change.shift)
    game = Game(noise=certificate.noise, queries=promise.queries, moves=move)
    coin, noise_source = np.random.default_rng(seed).spawn(2)
    play: Play
    if mode == "real":
        _require_playable(certificate, move)
        directions = (1 - 2 * (np.arange(promise.queries) % 2)).tolist()
        play = ThroughTheRoles(certificate=certificate, directions=directions)
    else:
        play = DrawnFromMasses(game=game, noise=certificate.noise, random=noise_source)
    found = attack(
        game,
        planted(play),
        delta=promise.delta,
        trials=trials or trials_for(mode, queries=promise.queries, moves=move),
        coin=coin,
        confidence=confidence,
        report=report,
    )
    return PromiseAudit(
        certificate=certificate,
        epsilon_certified=_certified_epsilon(certificate, move),
        attack=found,
        mode=mode,
        moves=move,
    )


def _require_playable(certificate: Certificate, moves: Moves) -> None:
    if not certificate.certified:
        raise InputError(
            "no federation accepts uncertified noise, so there is nothing real to play",
            hint="leave --mode real out: the fast mode draws any noise",
        )
    if moves != Moves():
        raise InputError("the roles play the move of one vote between two classes only")


def _certified_epsilon(certificate: Certificate, moves: Moves) -> float | None:
    """What accounting says of these moves."""
    spending = Spending(
        noise=certificate.noise,
        queries=certificate.promise.queries,
        change=Change(moved=moves.counts, shift=moves.by),
    )
    try:
        return account([spending], certificate.promise.delta)
    except UncertifiedError:
        return None
