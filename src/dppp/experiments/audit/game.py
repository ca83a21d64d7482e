"""The strongest known game against a promise: one vote moved, or not, in every query.

In world 0 the vote is where it was. In world 1 it has moved in all queries: from one class to
another, and back in every second query, which costs nothing where the noise is fresh and shows all
where it is not. The adversary sees all counts, knows all other votes and the colluders' noise, and
takes them off: what is left are the honest noise shares, and the move if there was one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.whole_numbers import keep_whole

Worlds = NDArray[np.bool_]
"""For each trial whether the vote was moved."""
Seen = NDArray[np.int64]
"""Trials by moved counts: the counts of the first query, then those of the second, and so on."""
Play = Callable[[Worlds], Seen]
"""Plays a trial in each of these worlds; the parties' part of the game."""

_DECIMALS = 9
"""Of a log-likelihood ratio: sums of the same losses in another order are to be the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What a change of one vote does to the counts of one query.

    A choice between classes moves two counts by one: one down, one up. Of an even number half go
    down and half go up; a single count goes up.
    """

    counts: int = 2
    by: int = 1

    def __post_init__(self) -> None:
        keep_whole(self, "counts", "by")

    def shifts(self, queries: int) -> NDArray[np.int64]:
        """How far each moved count of each query goes in world 1; back in every second query."""
        up = self.counts - self.counts // 2
        once = self.by * np.array([-1] * (self.counts - up) + [1] * up, dtype=np.int64)
        turns = 1 - 2 * (np.arange(queries, dtype=np.int64) % 2)
        return np.outer(turns, once).ravel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """What the adversary knows before it looks: the honest noise, the queries, the move."""

    noise: Noise
    queries: int
    moves: Moves = Moves()
    _losses: dict[int, Floats] = field(default_factory=dict, repr=False, compare=False)

    @property
    def shifts(self) -> NDArray[np.int64]:
        """Of each moved count in world 1."""
        return self.moves.shifts(self.queries)

    def losses(self, seen: Seen) -> Floats:
        """The log of how much likelier this is in world 0, by the exact masses of the noise."""
        first = pmf_of(self.noise).first
        total = np.zeros(len(seen))
        for column, shift in enumerate(self.shifts.tolist()):
            table = self._loss_table(shift)
            place = np.clip(seen[:, column] - (first - abs(shift)), 0, len(table) - 1)
            total += table[place]
        return np.round(total, _DECIMALS)  # so that what is as likely in both worlds is 0

    def _loss_table(self, shift: int) -> Floats:
        """The log of p(x) / p(x - shift), from the lowest x that either world gives."""
        if shift not in self._losses:
            width = abs(shift)
            masses = np.pad(pmf_of(self.noise).masses, 2 * width)
            stay, moved = masses, np.roll(masses, shift)
            with np.errstate(divide="ignore", invalid="ignore"):
                table = np.log(stay / moved)
            table[stay == moved] = 0.0
            self._losses[shift] = table[width : len(table) - width]
        return self._losses[shift]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFromMasses:
    """The fast mode: honest sums drawn from the masses of their noise, by Walker's aliases.

    No role takes part. The draws are of 64 bits and seeded: they test claims, and protect nobody.
    """

    game: Game
    noise: Noise
    random: np.random.Generator
    _aliases: "list[_Aliases]" = field(default_factory=list, repr=False)

    def __call__(self, worlds: Worlds) -> Seen:
        """Noise and moves of this many trials."""
        if not self._aliases:
            self._aliases.append(_Aliases.of(self.noise))
        shifts = self.game.shifts
        drawn = self._aliases[0].draw((len(worlds), len(shifts)), self.random)
        drawn += worlds[:, np.newaxis] * shifts
        return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aliases:
    """Walker's table: a cell at random, and then its own value or its alias."""

    first: int
    bits: int
    own: NDArray[np.uint64]
    alias: NDArray[np.int64]

    @classmethod
    def of(cls, noise: Noise) -> "_Aliases":
        pmf = pmf_of(noise)
        bits = max(1, (len(pmf.masses) - 1).bit_length())
        cells = np.zeros(2**bits)
        cells[: len(pmf.masses)] = pmf.masses * (2**bits / pmf.masses.sum())
        alias = np.arange(2**bits)
        small = [place for place in range(2**bits) if cells[place] < 1]
        large = [place for place in range(2**bits) if cells[place] >= 1]
        own = np.ones(2**bits)
        while small and large:
            poor, rich = small.pop(), large.pop()
            own[poor], alias[poor] = cells[poor], rich
            cells[rich] -= 1 - cells[poor]
            (small if cells[rich] < 1 else large).append(rich)
        scaled = np.minimum(own, 1 - 2.0**-53) * 2.0 ** (64 - bits)
        return cls(first=pmf.first, bits=bits, own=scaled.astype(np.uint64), alias=alias)

    def draw(self, shape: tuple[int, int], random: np.random.Generator) -> Seen:
        words = random.integers(0, 2**64, size=shape, dtype=np.uint64)
        rest_bits = np.uint64(64 - self.bits)
        cell = (words >> rest_bits).astype(np.int64)
        words &= np.uint64(2 ** (64 - self.bits) - 1)
        drawn = np.where(words < self.own[cell], cell, self.alias[cell])
        drawn += self.first
        return drawn
