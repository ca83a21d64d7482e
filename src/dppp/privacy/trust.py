"""Who may misbehave, and what follows from it (docs/privacy.md, section 1).

N teachers, of whom up to C pool all they know with the aggregator and up to D vanish in any query,
both at once. Noise, quorum and decryption threshold follow from these three numbers; every party
works them out for itself.
"""

from dataclasses import dataclass
from typing import Self

from dppp.errors import InputError
from dppp.whole_numbers import keep_whole, require_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Numbers of teachers, of colluders among them, and of dropouts to survive.

    >>> from dppp import Trust
    >>> trust = Trust.with_defaults(20)
    >>> trust
    Trust(teachers=20, colluders=4, dropouts=2)
    >>> trust.honest_shares, trust.threshold, trust.ballots_needed
    (14, 13, 18)
    """

    teachers: int
    colluders: int
    dropouts: int

    def __post_init__(self) -> None:
        keep_whole(self, "teachers", "colluders", "dropouts", least=0)
        if self.teachers < 2:
            raise InputError(
                f"teachers must be at least 2, got {self.teachers}",
                hint="one teacher alone hides nobody: have at least 2, better 20",
            )
        if self.honest_shares < 1:
            raise InputError(
                f"colluders + dropouts must be below teachers, got {self.colluders} + "
                f"{self.dropouts} of {self.teachers}",
                hint=self._what_to_choose(),
            )
        if self.threshold > self.ballots_needed:
            raise InputError(
                f"the decryption threshold would be {self.threshold}, but only "
                f"{self.ballots_needed} of {self.teachers} teachers are sure to answer",
                hint=self._what_to_choose(),
            )

    @classmethod
    def with_defaults(
        cls, teachers: int, colluders: int | None = None, dropouts: int | None = None
    ) -> Self:
        """Take max(1, N // 5) colluders and N // 10 dropouts where nothing else is said.

        With no colluders the promise does not hold against a teacher who also runs the aggregator.
        """
        teachers = require_whole("teachers", teachers, least=0)
        return cls(
            teachers=teachers,
            colluders=max(1, teachers // 5) if colluders is None else colluders,
            dropouts=teachers // 10 if dropouts is None else dropouts,
        )

    @property
    def ballots_needed(self) -> int:
        """Fewer ballots than this abort the batch."""
        return self.teachers - self.dropouts

    @property
    def honest_shares(self) -> int:
        """Noise shares in every tally that no colluder knows: what the noise is sized for."""
        return self.teachers - self.colluders - self.dropouts

    @property
    def threshold(self) -> int:
        """Decryption shares needed: two quorums of this size have an honest teacher in common."""
        return (self.teachers + self.colluders) // 2 + 1

    @property
    def survives_withholding(self) -> bool:
        """Whether a batch still opens when colluders also withhold their decryption shares."""
        return self.threshold <= self.honest_shares

    def _what_to_choose(self) -> str:
        """The threshold fits where N is above C + 2 D. Never advises to count on no colluders."""
        dropouts = (self.teachers - self.colluders - 1) // 2
        colluders = self.teachers - 2 * self.dropouts - 1
        advice = [f"lower dropouts to {dropouts}"] if dropouts >= 0 else []
        advice += [f"lower colluders to {colluders}"] if colluders >= 1 else []
        fewest = self.colluders + 2 * self.dropouts + 1
        return ", ".join([*advice, f"{'or ' if advice else ''}have at least {fewest} teachers"])
