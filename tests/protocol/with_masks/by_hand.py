"""A batch that a test runs in the aggregator's place, with its key, so that it can lie anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.protocol.with_masks.federation import Federation

from dppp.masks.ballots import seal_at
from dppp.masks.dealing import secret_row_bytes
from dppp.masks.opening import add_blocks, recover_secret, secret_to_bytes
from dppp.masks.packing import pack_bits
from dppp.protocol.messages import BatchId, Endorsement, Endorser
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    CertifiedSum,
    DeliveredList,
    MaskedBallot,
    RefundNotice,
    RootRequest,
    Roster,
    RowRequest,
    SealEvidence,
    Withdrawal,
    WithdrawalRequest,
)
from dppp.protocol.with_masks.verification import digests_of_headers


class ByHand:
    """One attempt at one batch of a federation, up to ballots; the rest is for the test to ask."""

    def __init__(
        self,
        federation: Federation,
        *,
        roster: Roster | None = None,
        attempt: int = 1,
        withdrawals: Sequence[bytes] = (),
        seed: object = 0,
        voters: Sequence[int] | None = None,
    ) -> None:
        self.federation = federation
        self.task = federation.task
        self.roster = roster or federation.take_keys()
        self.attempt = attempt
        self.request = federation.request(seed=seed)
        self.voters = tuple(voters or federation.setting.everybody)
        self.ballots = {
            each: decode(
                self.ask(
                    each,
                    federation.cast_request(
                        self.roster,
                        attempt=attempt,
                        withdrawals=withdrawals,
                        request=self.request,
                        teacher=each,
                    ),
                ),
                MaskedBallot,
            )
            for each in self.voters
        }
        self.endorsements: dict[int, Endorsement] = {}

    @property
    def batch(self) -> BatchId:
        return self.request.batch_id

    def ask(self, teacher: int, data: bytes) -> bytes:
        answer = self.federation.teachers[teacher].handle(data, now=self.federation.now)
        assert answer is not None
        return answer

    def list_for(
        self, teacher: int, participants: Sequence[int] | None = None, **changes: object
    ) -> DeliveredList:
        members = self.federation.setting.everybody
        listed = [self.ballots[each] for each in participants or self.voters]
        place = members.index(teacher)
        made = DeliveredList(
            task_id=self.task.task_id,
            batch_id=self.batch,
            attempt=self.attempt,
            roster_hash=self.roster.hash,
            recipient=teacher,
            participants=tuple(participants or self.voters),
            header_digests=digests_of_headers(listed),
            secret_seals=b"".join(
                seal_at(each.secret_seals, place, len(members)) for each in listed
            ),
            seed_seals=b"".join(seal_at(each.seed_seals, place, len(members)) for each in listed),
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    def endorse(self, teacher: int, **changes: object) -> Endorsement:
        data = self.federation.sign(self.list_for(teacher, **changes))  # type: ignore[arg-type]
        self.endorsements[teacher] = decode(self.ask(teacher, data), Endorsement)
        return self.endorsements[teacher]

    def endorse_all(self) -> None:
        for each in self.voters:
            self.endorse(each)

    @property
    def sum_bytes(self) -> tuple[bytes, bytes]:
        """The sums of the check blocks and of the secrets."""
        parameters = self.task.parameters
        length = secret_row_bytes(parameters)
        rows = {each: said.content[:length] for each, said in self.endorsements.items()}
        check = add_blocks(
            parameters, (self.ballots[each].check_block for each in self.voters), count=1
        )[0]
        secret = recover_secret(parameters, rows)
        return pack_bits(check, parameters.modulus_bits), secret_to_bytes(secret)

    def certified_for(
        self,
        teacher: int,
        endorsers: Sequence[int] | None = None,
        *,
        macs: Mapping[int, bytes] | None = None,
        has_signatures: bool = False,
        **changes: object,
    ) -> bytes:
        named = tuple(endorsers or sorted(self.endorsements))
        short = [Endorser.of(self.endorsements[each]) for each in named] if has_signatures else []
        check_sum, secret = self.sum_bytes
        made = CertifiedSum(
            task_id=self.task.task_id,
            batch_id=self.batch,
            attempt=self.attempt,
            list_hash=self.list_for(teacher).list_hash,
            recipient=teacher,
            endorsers=named,
            macs=b"".join(
                macs[each] if macs and each in macs else self.mac(each, teacher) for each in named
            ),
            digests=b"".join(each.digest for each in short),
            signatures=b"".join(each.signature for each in short),
            check_sum=check_sum,
            secret=secret,
        )
        return self.federation.sign(replace(made, **changes))  # type: ignore[arg-type]

    def mac(self, endorser: int, recipient: int) -> bytes:
        place = self.federation.setting.everybody.index(recipient)
        start = secret_row_bytes(self.task.parameters) + MAC_BYTES * place
        return self.endorsements[endorser].content[start : start + MAC_BYTES]

    def answer(self, teacher: int, **changes: object) -> bytes:
        return self.ask(teacher, self.certified_for(teacher, **changes))  # type: ignore[arg-type]

    def withdraw(self, teacher: int) -> bytes:
        unsigned = WithdrawalRequest(
            task_id=self.task.task_id, batch_id=self.batch, attempt=self.attempt
        )
        return self.ask(teacher, self.federation.sign(unsigned))

    def withdrawal_of(self, teacher: int, *, signer: int | None = None, **changes: object) -> bytes:
        """A withdrawal that a teacher signs without its role being asked."""
        unsigned = Withdrawal(
            task_id=self.task.task_id,
            batch_id=self.batch,
            attempt=self.attempt,
            teacher=teacher,
        )
        unsigned = replace(unsigned, **changes)  # type: ignore[arg-type]
        return encode(sign(unsigned, self.federation.setting.signer(signer or teacher)))

    def ids(self) -> dict[str, object]:
        return {"task_id": self.task.task_id, "batch_id": self.batch, "attempt": self.attempt}

    def root_request(self, withdrawals: Sequence[bytes]) -> bytes:
        made = RootRequest(**self.ids(), withdrawals=tuple(withdrawals))  # type: ignore[arg-type]
        return self.federation.sign(made)

    def row_request(self, purpose: int, withdrawals: Sequence[bytes] = ()) -> bytes:
        made = RowRequest(
            **self.ids(),  # type: ignore[arg-type]
            purpose=purpose,
            dealers=self.voters,
            withdrawals=tuple(withdrawals),
        )
        return self.federation.sign(made)

    def refund_notice(self, withdrawals: Sequence[bytes]) -> bytes:
        made = RefundNotice(**self.ids(), withdrawals=tuple(withdrawals))  # type: ignore[arg-type]
        return self.federation.sign(made)

    def evidence(self, dealer: int, purpose: int = 1, **changes: object) -> bytes:
        ballot = self.ballots[dealer]
        made = SealEvidence(
            **self.ids(),  # type: ignore[arg-type]
            roster_hash=self.roster.hash,
            dealer=dealer,
            purpose=purpose,
            header=ballot.header,
            header_signature=ballot.signature,
            seals=ballot.secret_seals if purpose == 1 else ballot.seed_seals,
        )
        return self.federation.sign(replace(made, **changes))  # type: ignore[arg-type]
