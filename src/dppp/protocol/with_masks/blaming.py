"""Who is at fault when a list does not open: by the aggregator, from what teachers show.

    in each of these ──────► were the seals delivered as the dealers signed them? if not, the
                                               aggregator, and no teacher for what it was delivered
    a seal does not open ──► evidence ─► complaint ─► the dealer, or who complained without reason
    S does not fit ────────► t withdrawals ─► roots ─► one that gives another check block, or none
                                            ─► sums that the roots do not give: their endorsers show
                                               their rows ─► a dealer that sealed another row, or an
                                               endorser that added wrongly, or shows nothing
    a seed is wrong ───────► rows as they were sealed ─► who gave another row, or the dealer whose
                                               rows do not give its seed

Everything here is signed or can be computed again, so whoever gets it comes to the same verdict.
Only silence is not: who was asked gets a stretch of time of its own for each thing that it is
asked, and then a word that it gave and does not back counts as false. A dealer that shows no root
has given no such word: it is missing, and the batch goes on without it.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import DpppError, NotFromAggregator, PeerFault, message_of
from dppp.masks.ballots import Header, seal_at
from dppp.masks.blame import (
    SealedRow,
    find_wrong_sums,
    is_other_row,
    is_row,
    judge_complaint,
    read_shown_row,
    recompute_dealing,
    row_bytes,
)
from dppp.masks.dealing import Dealing
from dppp.masks.epoch_keys import EpochKey
from dppp.masks.opening import recover_seeds
from dppp.masks.sealing import KEY_BYTES, Purpose, ShownSeal
from dppp.masks.sharing import add_rows, elements_from_bytes, elements_to_bytes
from dppp.protocol.batch import Step
from dppp.protocol.events import Disputed
from dppp.protocol.messages import Endorsement, ListHash
from dppp.protocol.signing import Signer, require_from_aggregator, sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.ballots import seals_to
from dppp.protocol.with_masks.deliveries import Delivery
from dppp.protocol.with_masks.messages import (
    Complaint,
    MaskedBallot,
    Objection,
    PublishedKey,
    RootRequest,
    RowRequest,
    SealEvidence,
    ShownRoot,
    ShownRows,
    Withdrawal,
    WithdrawalRequest,
    digest_of_delivered,
)
from dppp.protocol.with_masks.verification import MaskedRun, list_hash_of

Culprits = dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedVerdict:
    """Who is at fault for wrong seeds, and rows as they were sealed, by teacher and dealer."""

    culprits: Culprits = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    false_dealers: set[int] = field(default_factory=set)
    rows: dict[tuple[int, int], bytes] = field(default_factory=dict)


def _elements(row: bytes) -> NDArray[np.uint16]:
    return elements_from_bytes(row, len(row) // 2)


class Blaming:
    """What is known in the disputes of one attempt at a batch."""

    def __init__(
        self,
        run: MaskedRun,
        signer: Signer,
        ballots: Mapping[int, MaskedBallot],
        *,
        patience_seconds: int,
    ) -> None:
        """`patience_seconds`: how long a teacher has for each thing that it is asked to show."""
        self.reason = ""
        self.missing: set[int] = set()
        self.wrong_seeds: tuple[int, ...] = ()
        self._run = run
        self._signer = signer
        self._ballots = ballots
        self._members = run.members
        self._objections: dict[int, list[tuple[int, Purpose]]] = {}
        self._objected: set[int] = set()
        self._is_withdrawing = False
        self._withdrawals: dict[int, bytes] = {}
        self.against_aggregator = ""
        self._served: set[int] = set()
        self._endorsed: dict[int, Endorsement] = {}
        self._dealings: dict[int, Dealing] = {}
        self._lied: Culprits = {}
        self._suspects: tuple[int, ...] | None = None
        self._cleared: set[int] = set()
        self._is_judged = False
        self._seed_rows: dict[int, dict[int, bytes]] = {}
        self._asked_seeds_of: tuple[int, ...] = ()
        self._patience_seconds = patience_seconds
        self._asked_since: dict[tuple[int, Step], int] = {}
        self._now = 0

    @property
    def objectors(self) -> set[int]:
        """Teachers that found seals which do not open, so that they cannot endorse."""
        return set(self._objected)

    @property
    def doubted(self) -> set[int]:
        """Dealers of seals that are objected to, until it is settled."""
        return {dealer for open_ in self._objections.values() for dealer, _ in open_}

    @property
    def withdrawals(self) -> tuple[bytes, ...]:
        """The signed words of those who will never open this attempt."""
        return tuple(self._withdrawals[each] for each in sorted(self._withdrawals))

    @property
    def withdrawers(self) -> frozenset[int]:
        """Those who gave them."""
        return frozenset(self._withdrawals)

    @property
    def is_withdrawn(self) -> bool:
        """Whether it is sure that this attempt is never opened."""
        return len(self._withdrawals) >= self._run.task.trust.threshold

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can be found out."""
        return not any(self._objections.values()) and (not self._endorsed or self._is_judged)

    @property
    def is_waiting_for_seeds(self) -> bool:
        """Whether rows of seeds are still to be shown."""
        return any(step is Step.SEED_ROWS for _, step in self.wanted())

    def follow(self, now: int) -> None:
        """Note since when each thing is asked for, so that everybody has time to show it."""
        self._now = now
        self._asked_since = {
            each: min(now, self._asked_since.get(each, now)) for each in self.wanted()
        }

    def _late(self, step: Step) -> set[int]:
        return {
            teacher
            for (teacher, asked), since in self._asked_since.items()
            if asked is step and self._now >= since + self._patience_seconds
        }

    def news(self) -> Disputed:
        """That there is a dispute."""
        return Disputed(batch=self._run.batch_id, reason=self.reason)

    def withdraw(self, endorsed: Mapping[int, Endorsement], reason: str) -> None:
        """The list will not open. `endorsed`: whose sums did not fit, if that is why."""
        self._is_withdrawing = True
        self._endorsed = dict(endorsed)
        self.reason = reason

    def wanted(self) -> set[tuple[int, Step]]:
        """What is still to be shown, and by whom."""
        asked = {(each, Step.COMPLAINT) for each, open_ in self._objections.items() if open_}
        participants = set(self._ballots)
        if self._is_withdrawing:
            asked |= {(each, Step.WITHDRAWAL) for each in participants - set(self._withdrawals)}
        if self.is_withdrawn and self._endorsed:
            asked |= {(each, Step.ROOT) for each in self._without_root()}
            asked |= {(each, Step.SECRET_ROWS) for each in self._uncleared()}
        asked |= {(each, Step.SEED_ROWS) for each in self._without_seed_rows()}
        return asked

    def _without_root(self) -> set[int]:
        return set(self._ballots) - set(self._dealings) - set(self._lied) - self.missing

    def _uncleared(self) -> set[int]:
        return set(self._suspects or ()) - self._cleared - set(self._lied)

    def _without_seed_rows(self) -> set[int]:
        wrong = set(self.wrong_seeds)
        return {
            each for each in self._asked_seeds_of if not wrong <= set(self._seed_rows.get(each, ()))
        }

    def messages(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """All that a teacher is sent who is asked for this: evidence of each seal in question."""
        if step is Step.COMPLAINT:
            return tuple(self._evidence(*each) for each in self._objections[teacher])
        return (self.message(teacher, step),)

    def message(self, teacher: int, step: Step) -> bytes:
        """What a teacher is sent who is asked for this."""
        ids: dict[str, Any] = {
            "task_id": self._run.task.task_id,
            "batch_id": self._run.batch_id,
            "attempt": self._run.attempt,
        }
        match step:
            case Step.COMPLAINT:
                return self._evidence(*self._objections[teacher][0])
            case Step.WITHDRAWAL:
                return encode(sign(WithdrawalRequest(**ids), self._signer))
            case Step.ROOT:
                asked = RootRequest(**ids, withdrawals=self.withdrawals)
                return encode(sign(asked, self._signer))
            case Step.SECRET_ROWS:
                rows = RowRequest(
                    **ids,
                    purpose=int(Purpose.SECRET_ROW),
                    dealers=tuple(self._ballots),
                    withdrawals=self.withdrawals,
                )
                return encode(sign(rows, self._signer))
            case _:
                seeds = RowRequest(**ids, purpose=int(Purpose.SEED_ROW), dealers=self.wrong_seeds)
                return encode(sign(seeds, self._signer))

    def take(
        self, message: Objection | Complaint | Withdrawal | ShownRoot | ShownRows, data: bytes
    ) -> Culprits:
        """Take what a teacher signed; who is at fault by it."""
        match message:
            case Objection():
                return self._take_objection(message)
            case Complaint():
                return self._take_complaint(message)
            case Withdrawal():
                self._withdrawals.setdefault(message.teacher, data)
            case ShownRoot():
                return self._take_root(message)
            case ShownRows():
                return self._take_rows(message)
        return {}

    def judge(self) -> Culprits:
        """Who is at fault, as far as it is known now."""
        return self._judge_objectors() | self._judge_sums()

    def _judge_delivery(self, delivery: Delivery) -> Culprits:
        """Who is at fault for what a teacher was delivered: the aggregator, or who made it up.

        Nothing that a teacher says of its seals is held against it before this.
        """
        teacher = delivery.recipient
        try:
            require_from_aggregator(self._run.task, delivery)
        except NotFromAggregator:
            return {teacher: "it showed a delivery that the aggregator did not sign"}
        seals = seals_to(teacher, self._members, self._ballots.values())
        signed = (self._list_hash, digest_of_delivered(*seals))
        if (delivery.list_hash, delivery.seals_digest) == signed:
            self._served.add(teacher)
        else:
            self.against_aggregator = (
                f"the aggregator delivered to teacher {teacher} what the dealers did not sign"
            )
        return {}

    @functools.cached_property
    def _list_hash(self) -> ListHash:
        return list_hash_of(self._run, tuple(self._ballots.values()))

    def _judge_endorsers(self, endorsed: Mapping[int, Endorsement]) -> Culprits:
        """Who is at fault for what these were delivered, before any of them is asked for rows."""
        found: Culprits = {}
        for teacher in endorsed.keys() - self._served:
            said = Delivery.in_endorsement(endorsed[teacher], attempt=self._run.attempt)
            found |= self._judge_delivery(said)
        return found

    def _judge_objectors(self) -> Culprits:
        late = self._late(Step.COMPLAINT)
        for each in late:
            self._objections[each] = []
        return dict.fromkeys(late, "it objected to a seal and did not show why")

    def _judge_sums(self) -> Culprits:
        """Who is at fault for a sum that does not fit: roots first, then the rows of endorsers."""
        if not self._endorsed or not self.is_withdrawn:
            return {}
        self.missing |= self._without_root() & self._late(Step.ROOT)
        if self._without_root():
            return {}
        if self._suspects is None and not self._lied and not self.missing:
            self._suspects = find_wrong_sums(
                self._dealings, {each: self._sum_of(each) for each in self._endorsed}
            )
            suspected = {each: self._endorsed[each] for each in self._suspects}
            self._lied |= self._judge_endorsers(suspected)
        for each in self._uncleared() & self._late(Step.SECRET_ROWS):
            self._lied[each] = "it endorsed a sum of rows that it did not show"
        self._is_judged = not self._uncleared()
        return dict(self._lied)

    def _sum_of(self, endorser: int) -> bytes:
        length = row_bytes(self._run.task.parameters, Purpose.SECRET_ROW)
        return self._endorsed[endorser].content[:length]

    def ask_for_seeds(
        self, dealers: Sequence[int], answerers: Mapping[int, Endorsement]
    ) -> Culprits:
        """These dealers' seeds came out wrong: those who answered show the rows as sealed."""
        self.wrong_seeds = tuple(sorted({*self.wrong_seeds, *dealers}))
        self._asked_seeds_of = tuple(sorted({*self._asked_seeds_of, *answerers}))
        return self._judge_endorsers(answerers)

    def judge_seeds(self, given: Mapping[int, Sequence[bytes]]) -> SeedVerdict:
        """Who gave another row than was sealed to it, or dealt rows that miss its seed."""
        silent = frozenset(self._without_seed_rows() & self._late(Step.SEED_ROWS))
        self._asked_seeds_of = tuple(each for each in self._asked_seeds_of if each not in silent)
        if self._without_seed_rows():
            return SeedVerdict(silent=silent)
        verdict = SeedVerdict(silent=silent)
        for dealer in self.wrong_seeds:
            self._judge_seed(dealer, given, verdict)
        return verdict

    def _judge_seed(
        self, dealer: int, given: Mapping[int, Sequence[bytes]], verdict: SeedVerdict
    ) -> None:
        place = list(self._ballots).index(dealer)
        shown = {each: rows[dealer] for each, rows in self._seed_rows.items() if dealer in rows}
        for teacher, row in shown.items():
            verdict.rows[teacher, dealer] = row
            if teacher in given and given[teacher][place] != row:
                verdict.culprits[teacher] = f"it gave another row of teacher {dealer}'s seed"
        if len(shown) < self._run.task.parameters.rows_needed:
            return
        digest = Header.from_bytes(self._ballots[dealer].header).seed_digest
        rows = {each: [row] for each, row in shown.items()}
        if recover_seeds(self._run.task.parameters, rows, [digest])[1]:
            verdict.false_dealers.add(dealer)
            verdict.culprits[dealer] = "it dealt rows that do not give its seed"

    def _take_objection(self, message: Objection) -> Culprits:
        named = [each for each in message.dealers if each in self._ballots]
        if message.teacher in self._objected or not named:
            return {}
        self._objected.add(message.teacher)
        found = self._judge_delivery(Delivery.in_objection(message))
        if not found:
            purpose = Purpose(message.purpose)
            self._objections[message.teacher] = [(each, purpose) for each in named]
        return found

    def _take_complaint(self, message: Complaint) -> Culprits:
        about = (message.dealer, Purpose(message.purpose))
        if about not in self._objections.get(message.teacher, []):
            return {}
        self._objections[message.teacher].remove(about)
        culprit = judge_complaint(
            self._run.task.parameters,
            self._seal(message.dealer, message.teacher, Purpose(message.purpose)),
            self._epoch_keys(),
            pair_secret=message.pair_secret,
            proof=message.proof,
        )
        if culprit == message.dealer:
            return {culprit: f"its seal for teacher {message.teacher} does not open"}
        return {culprit: f"it complained about a good seal of teacher {message.dealer}"}

    def _take_root(self, message: ShownRoot) -> Culprits:
        if not self.is_withdrawn or message.teacher in self._dealings:
            return {}
        header = Header.from_bytes(self._ballots[message.teacher].header)
        try:
            self._dealings[message.teacher] = recompute_dealing(
                self._run.task.parameters, self._run.epoch, header, message.root
            )
        except PeerFault as fault:
            self._lied[message.teacher] = message_of(fault)
        return {}

    def _take_rows(self, message: ShownRows) -> Culprits:
        if message.teacher not in self._served:
            return {}
        purpose = Purpose(message.purpose)
        try:
            rows = self._read_rows(message, purpose)
        except DpppError as error:
            return {message.teacher: message_of(error)}
        if purpose is Purpose.SEED_ROW:
            self._seed_rows.setdefault(message.teacher, {}).update(
                {dealer: shown.row for dealer, shown in rows.items()}
            )
            return {}
        return self._judge_rows(message.teacher, rows)

    def _judge_rows(self, teacher: int, rows: Mapping[int, ShownSeal]) -> Culprits:
        """An endorser showed what it added up: then some dealer sealed another row, or it lied."""
        if (
            self._suspects is None
            or teacher not in self._suspects
            or set(rows) != set(self._ballots)
        ):
            return {}
        self._cleared.add(teacher)
        liars = {
            dealer: f"it sealed another row to teacher {teacher} than its root gives"
            for dealer, shown in rows.items()
            if is_other_row(
                self._dealings[dealer], self._seal(dealer, teacher, Purpose.SECRET_ROW), shown
            )
        }
        added = elements_to_bytes(
            add_rows(np.stack([_elements(each.row) for each in rows.values()]))
        )
        found = liars
        if added != self._sum_of(teacher):
            found = {**liars, teacher: "it endorsed another sum than that of its rows"}
        self._lied |= found
        return found

    def _read_rows(self, message: ShownRows, purpose: Purpose) -> dict[int, ShownSeal]:
        length = row_bytes(self._run.task.parameters, purpose)
        if len(message.rows) != length * len(message.dealers):
            raise PeerFault("it showed rows of another length", culprits=(message.teacher,))
        found = {}
        for place, dealer in enumerate(message.dealers):
            shown = ShownSeal(
                tag_key=message.tag_keys[place * KEY_BYTES : (place + 1) * KEY_BYTES],
                row=message.rows[place * length : (place + 1) * length],
            )
            if dealer not in self._ballots:
                raise PeerFault("it showed a row of a stranger", culprits=(message.teacher,))
            row = read_shown_row(self._seal(dealer, message.teacher, purpose), shown)
            if not is_row(row):
                raise PeerFault(
                    f"it endorsed a list in which teacher {dealer} sealed to it what is not a row",
                    culprits=(message.teacher,),
                )
            found[dealer] = shown
        return found

    def _seal(self, dealer: int, recipient: int, purpose: Purpose) -> SealedRow:
        ballot = self._ballots[dealer]
        place = self._members.index(recipient)
        return SealedRow(
            epoch=self._run.epoch,
            votes_seed=self._run.votes_seed,
            dealer=dealer,
            recipient=recipient,
            purpose=purpose,
            head_digest=Header.from_bytes(ballot.header).head_digest,
            sealed=seal_at(self._seals(ballot, purpose), place, len(self._members)),
        )

    @staticmethod
    def _seals(ballot: MaskedBallot, purpose: Purpose) -> bytes:
        return ballot.secret_seals if purpose is Purpose.SECRET_ROW else ballot.seed_seals

    def _epoch_keys(self) -> dict[int, EpochKey]:
        published = [decode(each, PublishedKey) for each in self._run.roster.keys]
        return {
            each.teacher: EpochKey(teacher=each.teacher, public=each.public) for each in published
        }

    def _evidence(self, dealer: int, purpose: Purpose) -> bytes:
        ballot = self._ballots[dealer]
        unsigned = SealEvidence(
            task_id=self._run.task.task_id,
            batch_id=self._run.batch_id,
            attempt=self._run.attempt,
            roster_hash=self._run.roster.hash,
            dealer=dealer,
            purpose=int(purpose),
            header=ballot.header,
            header_signature=ballot.signature,
            seals=self._seals(ballot, purpose),
        )
        return encode(sign(unsigned, self._signer))
