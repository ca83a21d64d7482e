"""The audit of a promise as a whole: the game, how it is played, and the verdict beside the claim.

Used by `dppp audit`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dppp.errors import InputError, UncertifiedError
from dppp.experiments.audit.attack import Attack, OnProgress, attack
from dppp.experiments.audit.bound import CONFIDENCE, epsilon_lower
from dppp.experiments.audit.game import DrawnFromMasses, Game, Moves, Play
from dppp.experiments.audit.roles import ThroughTheRoles
from dppp.privacy.accounting import Spending, account
from dppp.privacy.certificate import Certificate
from dppp.privacy.change import Change
from dppp.protocol.question import Question
from dppp.randomness import RandomSource, system_randomness

MODES = ("fast", "real")

_DRAWS = 400_000_000
"""Noisy counts that a fast audit draws if it is not told how many trials to play."""
_MOST_TRIALS, _FEWEST_TRIALS = 20_000_000, 100_000
_MOST_BATCHES, _FEWEST_BATCHES = 100, 20
_TEACHERS = 2_000
"""Of all federations of a real audit together, if it is not told how many trials to play."""

FALSE_ALARM_RATE = 1e-6
"""How often, at the most, an audit refutes what is true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAudit:
    """What an attack shows of ε, beside what the certificate says of it.

    `epsilon_certified` is what our accountant certifies for this noise at the promised δ; None if
    that is past all use. The attack's bound has the confidence that was asked for, so a right
    certificate is passed by it as often as that allows. The verdicts are by a bound of their own,
    `epsilon_for_verdict`, which is wrong once in a million audits.
    """

    certificate: Certificate
    epsilon_certified: float | None
    attack: Attack
    mode: str
    moves: Moves

    @property
    def spending(self) -> Spending:
        """What accounting is asked about: the moves in all queries."""
        change = Change(moved=self.moves.counts, shift=self.moves.by)
        queries = self.certificate.promise.queries
        return Spending(noise=self.certificate.noise, queries=queries, change=change)

    @property
    def epsilon_for_verdict(self) -> float:
        """ε is at least this, but once in a million."""
        found = self.attack
        return float(
            epsilon_lower(
                found.right,
                found.wrong,
                trials=found.counted,
                delta=found.delta,
                confidence=1 - FALSE_ALARM_RATE,
            )
        )

    @property
    def is_promise_refuted(self) -> bool:
        """Whether more is spent than was promised."""
        return self.epsilon_for_verdict > self.certificate.promise.epsilon

    @property
    def is_certificate_refuted(self) -> bool:
        """Whether more is spent than the accountant says: a fault in it, or in the noise."""
        certified = self.epsilon_certified
        return certified is not None and self.epsilon_for_verdict > certified

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        found = self.attack
        return {
            "epsilon_lower": found.epsilon_lower,
            "epsilon_certified": self.epsilon_certified,
            "confidence": found.confidence,
            "trials": found.trials,
            "mode": self.mode,
            "epsilon_for_verdict": self.epsilon_for_verdict,
            "false_alarm_rate": FALSE_ALARM_RATE,
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


def trials_for(queries: int, moves: Moves) -> int:
    """How many trials the fast mode plays in a minute or so."""
    return max(_FEWEST_TRIALS, min(_MOST_TRIALS, _DRAWS // (queries * moves.counts)))


def audit_promise(
    certificate: Certificate,
    *,
    mode: str = "fast",
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 1,
    moves: Moves | None = None,
    question: Question | None = None,
    randomness: RandomSource = system_randomness,
    planted: Callable[[Play], Play] = lambda play: play,
    report: OnProgress = lambda *_: None,
) -> PromiseAudit:
    """Attack the noise of this certificate; `planted` may put a fault into what is played.

    The real mode asks this question, if one is given, and else one that is as the promise says. Its
    teachers draw from `randomness`.
    """
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
        roles = ThroughTheRoles.of(certificate, move, question, randomness=randomness)
        batches = _TEACHERS // certificate.trust.teachers
        usual = roles.games * min(max(batches, _FEWEST_BATCHES), _MOST_BATCHES)
        play, at_once = roles, roles.games
    else:
        play = DrawnFromMasses(game=game, noise=certificate.noise, random=noise_source)
        usual, at_once = trials_for(promise.queries, move), None
    found = attack(
        game,
        planted(play),
        delta=promise.delta,
        trials=usual if trials is None else trials,
        coin=coin,
        confidence=confidence,
        at_once=at_once,
        report=report,
    )
    made = PromiseAudit(
        certificate=certificate, epsilon_certified=None, attack=found, mode=mode, moves=move
    )
    return replace(made, epsilon_certified=_certified_epsilon(made.spending, promise.delta))


def _require_playable(certificate: Certificate, moves: Moves) -> None:
    if not certificate.certified:
        raise InputError(
            "no federation accepts uncertified noise, so there is nothing real to play",
            hint="leave --mode real out: the fast mode draws any noise",
        )
    change = certificate.promise.change
    if moves != Moves(counts=change.moved, by=change.shift):
        raise InputError(
            "the roles cast votes as the question allows, and can play no other moves",
            hint="leave mode='real' out, or the moves",
        )


def _certified_epsilon(spending: Spending, delta: float) -> float | None:
    try:
        return account([spending], delta)
    except UncertifiedError:
        return None
