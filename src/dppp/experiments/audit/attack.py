"""The audit of a promise: learn, choose a threshold, and only then count.

Three parts of the trials, each played afresh, so that the confidence is that of `bound.py`: a tenth
to learn what to look at, a fifth to choose the statistic and the threshold that promise the best
bound, and the rest to count right and wrong guesses with what was chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.audit.bound import CONFIDENCE, epsilon_lower
from dppp.experiments.audit.game import Game, Play, Worlds
from dppp.experiments.audit.statistics import Statistic, features_of, learn
from dppp.privacy.pmf import Floats
from dppp.whole_numbers import require_whole

FEWEST_TRIALS = 20
_MOST_TO_LEARN = 50_000
_FEW = 2_000
"""So few trials teach little: of as many a third is learned from."""
_AT_ONCE = 2**17
"""Counts that are played at a time."""
_THRESHOLDS = 200
_LUCK = 1.5
"""Standard deviations that are taken off when a threshold is chosen."""
LIKELIHOOD = "likelihood ratio of the certified noise"

OnProgress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What the adversary looked at, how often it was right and wrong, and what that shows."""

    epsilon_lower: float
    confidence: float
    delta: float
    trials: int
    counted: int
    right: int
    wrong: int
    statistic: str
    threshold: float
    curve: "Curve" = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """How many trials of each world the statistic had at or above each threshold.

    `stayed` and `moved` are the worlds; thresholds rise from the lowest below 0 to the highest.
    """

    thresholds: Floats
    stayed: NDArray[np.int64]
    moved: NDArray[np.int64]
    stayed_trials: int
    moved_trials: int


def attack(
    game: Game,
    play: Play,
    *,
    delta: float,
    trials: int,
    coin: np.random.Generator,
    confidence: float = CONFIDENCE,
    at_once: int | None = None,
    report: OnProgress = lambda *_: None,
) -> Attack:
    """Play the game this many times, and say what ε is at least.

    `at_once` games are played together, or as many as fit into memory.
    """
    require_whole("trials", trials, least=FEWEST_TRIALS)
    rounds = _Rounds(
        game=game,
        play=play,
        coin=coin,
        trials=trials,
        at_once=at_once or max(1, _AT_ONCE // len(game.shifts)),
        report=report,
    )
    to_learn = min(max(trials // 10, min(trials // 3, _FEW)), _MOST_TO_LEARN)
    to_choose = trials // 5
    to_count = trials - to_learn - to_choose
    candidates = rounds.learn(to_learn, delta)
    name, statistic, grid, place = rounds.choose(candidates, to_choose, to_count, delta, confidence)
    tally = rounds.count(statistic, grid, to_count)
    right, wrong = tally.right_and_wrong()
    bound = epsilon_lower(
        right[place], wrong[place], trials=to_count, delta=delta, confidence=confidence
    )
    return Attack(
        epsilon_lower=float(bound),
        confidence=confidence,
        delta=delta,
        trials=trials,
        counted=to_count,
        right=int(right[place]),
        wrong=int(wrong[place]),
        statistic=name,
        threshold=float(grid[place]),
        curve=tally.curve(),
    )


@dataclass(slots=True, kw_only=True)
class _Rounds:
    """Plays trials in pieces that fit into memory."""

    game: Game
    play: Play
    coin: np.random.Generator
    trials: int
    at_once: int
    report: OnProgress
    played: int = 0

    def learn(self, trials: int, delta: float) -> dict[str, Statistic]:
        """The likelihood ratio, and the best of what one half taught and the other half tried."""
        pieces = self._pieces(trials)
        worlds, seen = np.concatenate(pieces), np.concatenate([self._play(each) for each in pieces])
        half = trials // 2
        best: tuple[float, str, Statistic] | None = None
        for feature in features_of(self.game):
            learned = learn(feature, worlds[:half], seen[:half])
            tally = _tally_of(learned(seen[half:]), worlds[half:], delta)
            if tally is None:
                continue
            found = float(tally.bounds(trials - half, delta, CONFIDENCE).max())
            if found > (0.0 if best is None else best[0]):
                best = (found, f"learned: {feature.words}", learned)
        candidates: dict[str, Statistic] = {LIKELIHOOD: self.game.losses}
        if best is not None:
            candidates[best[1]] = best[2]
        return candidates

    def choose(
        self,
        candidates: dict[str, Statistic],
        trials: int,
        to_count: int,
        delta: float,
        confidence: float,
    ) -> tuple[str, Statistic, Floats, int]:
        """The statistic and the place of the threshold with the best bound to hope for."""
        scores: dict[str, list[Floats]] = {name: [] for name in candidates}
        tossed = []
        for worlds in self._pieces(trials):
            tossed.append(worlds)
            seen = self._play(worlds)
            for name, statistic in candidates.items():
                scores[name].append(statistic(seen))
        worlds = np.concatenate(tossed)
        best: tuple[float, str, Floats, int] | None = None
        for name in candidates:
            tally = _tally_of(np.concatenate(scores[name]), worlds, delta)
            if tally is None:
                continue
            hopes = tally.bounds(to_count, delta, confidence)
            place = int(hopes.argmax())
            if best is None or hopes[place] > best[0]:
                best = (float(hopes[place]), name, tally.grid, place)
        if best is None:  # nothing differs at all
            return LIKELIHOOD, candidates[LIKELIHOOD], np.array([np.inf]), 0
        return best[1], candidates[best[1]], best[2], best[3]

    def count(self, statistic: Statistic, grid: Floats, trials: int) -> "_Tally":
        """Right and wrong guesses at every threshold; the chosen one is the one that counts."""
        tally = _Tally.empty(grid)
        for worlds in self._pieces(trials):
            tally.add(statistic(self._play(worlds)), worlds)
        return tally

    def _pieces(self, trials: int) -> list[Worlds]:
        """A coin for each game."""
        worlds = self.coin.integers(0, 2, size=trials, dtype=np.int8).astype(np.bool_)
        return np.array_split(worlds, max(1, -(-trials // self.at_once)))

    def _play(self, worlds: Worlds) -> NDArray[np.int64]:
        seen = self.play(worlds)
        self.played += len(worlds)
        self.report(self.played, self.trials)
        return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """Trials by world, by the sign of the statistic, and by how many thresholds its size reaches.

    The adversary names world 0 at `threshold` or above, and world 1 at `-threshold` or below.
    """

    grid: Floats
    numbers: NDArray[np.int64]

    @classmethod
    def empty(cls, grid: Floats) -> "_Tally":
        return cls(grid=grid, numbers=np.zeros((2, 2, len(grid) + 1), dtype=np.int64))

    def add(self, scores: Floats, worlds: Worlds) -> None:
        reached = np.searchsorted(self.grid, np.abs(scores), side="right")
        width = len(self.grid) + 1
        cell = (2 * worlds + (scores < 0)) * width + reached
        self.numbers[...] += np.bincount(cell, minlength=4 * width).reshape(2, 2, width)

    def _reaching(self) -> NDArray[np.int64]:
        """By world and sign, how many reach each threshold."""
        return np.asarray(self.numbers[:, :, ::-1].cumsum(axis=2)[:, :, ::-1][:, :, 1:])

    def right_and_wrong(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        reaching = self._reaching()
        return reaching[0, 0] + reaching[1, 1], reaching[1, 0] + reaching[0, 1]

    def bounds(self, trials: int, delta: float, confidence: float) -> Floats:
        """What so many trials would show, if they went like these but with less luck.

        Far out few trials are left, and the best of many thresholds is the luckiest.
        """
        right, wrong = self.right_and_wrong()
        growth = trials / max(1, int(self.numbers.sum()))
        return epsilon_lower(
            np.maximum(right - _LUCK * np.sqrt(right), 0) * growth,
            (wrong + 1 + _LUCK * np.sqrt(wrong)) * growth,
            trials=trials,
            delta=delta,
            confidence=confidence,
        )

    def curve(self) -> Curve:
        reaching, trials = self._reaching(), self.numbers.sum(axis=(1, 2))
        # At or above -t: all but those below it, which are the negative ones that pass t.
        below = trials[:, np.newaxis] - reaching[:, 1]
        above = np.concatenate((below[:, ::-1], reaching[:, 0]), axis=1)
        return Curve(
            thresholds=np.concatenate((-self.grid[::-1], self.grid)),
            stayed=above[0],
            moved=above[1],
            stayed_trials=int(trials[0]),
            moved_trials=int(trials[1]),
        )


def _tally_of(scores: Floats, worlds: Worlds, delta: float) -> _Tally | None:
    """These scores at thresholds of their own; None where all are 0."""
    sizes = np.abs(scores[scores != 0])
    if not len(sizes):
        return None
    rarest = min(0.5, max(20 / len(sizes), delta / 10))
    grid = np.unique(np.quantile(sizes, 1 - np.geomspace(1.0, rarest, _THRESHOLDS), method="lower"))
    tally = _Tally.empty(grid)
    tally.add(scores, worlds)
    return tally
