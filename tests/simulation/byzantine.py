"""Teachers that break the rules: colluders with a real key share, a real signer, and the wire.

Each has one way to misbehave and keeps the rules otherwise, but for this: it endorses any list that
it is shown and helps to open it, as often as it is asked and whoever asks.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import gmpy2
from tests.protocol.parties import (
    CLASSES,
    Setting,
    cast_anything,
    endorsed_by,
    pack_unchecked,
)

from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, read_ciphertexts, write_ciphertexts
from dppp.paillier.proofs.ballots import BallotProof
from dppp.paillier.proofs.shares import prove_shares
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    BatchId,
    CertifiedList,
    Endorsement,
    ListHash,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    share_context,
)
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.randomness import random_unit

Seen = Callable[[str], list[bytes]]
"""What honest teachers have sent of a kind so far; the aggregator shows it to its friends."""


class ByzantineTeacher:
    """Teacher `index`, misbehaving in the way that `how` says (operations.py)."""

    def __init__(
        self, setting: Setting, index: int, how: str, *, seen: Seen, source: Random
    ) -> None:
        self._setting = setting
        self._index = index
        self._how = how
        self._seen = seen
        self._source = source
        self._ballots: dict[BatchId, bytes] = {}
        self._endorsements: list[Endorsement] = []
        self._shares: dict[ListHash, DecryptionShares] = {}
        self._signer = setting.signer(index)

    def handle(self, data: bytes) -> list[bytes]:
        match kind_of(data):
            case BallotRequest.KIND:
                return self._vote(decode(data, BallotRequest))
            case BallotList.KIND:
                return [encode(each) for each in self._endorse(data)]
            case CertifiedList.KIND:
                return self._open(decode(data, CertifiedList))
            case ProofRequest.KIND:
                return self._prove(decode(data, ProofRequest))
        return []

    def vote_anew(self, batch: BatchId, size: int) -> bytes:
        """Another ballot for a batch: for an aggregator that wants two lists."""
        return self._cast(batch, self._any_entries(size))

    def _vote(self, request: BallotRequest) -> list[bytes]:
        batch = request.batch_id
        size = request.queries * len(CLASSES)
        entries = self._any_entries(size)
        ballots = self._seen(Ballot.KIND)
        others = [each for each in ballots if decode(each, Ballot).batch_id == batch]
        match self._how:
            case "garbage":
                sent = [self._source.randbytes(500)]
            case "two ballots":
                sent = [self.vote_anew(batch, size) for _ in range(2)]
            case "copy":
                victims = others[:1]
                sent = [
                    copy_as_power(self._setting, each, self._index, self._source)
                    for each in victims
                ]
            case "replay":
                sent = others[:1] + ballots[:1]
            case "impersonate":
                victim = self._index % len(self._setting.everybody) + 1
                sent = [self._cast(batch, entries, claimed=victim)]
            case "bad proof":
                sent = [self._cast(batch, entries, context=b"something else")]
            case _:
                if self._how == "oversize":
                    entries[self._source.randrange(size)] <<= self._source.randint(1, 40)
                sent = [self._ballots.setdefault(batch, self._cast(batch, entries))]
        return sent

    def _endorse(self, data: bytes) -> list[Endorsement]:
        own = decode(endorsed_by(self._setting, self._index, data), Endorsement)
        before, self._endorsements = self._endorsements, [*self._endorsements, own]
        random_hash = self._source.randbytes(32)
        match self._how:
            case "withhold endorsement":
                return []
            case "wrong statement":
                wrong = replace(own.statement, tally_hash=random_hash)
                return [sign(replace(own, statement=wrong), self._signer)]
            case "bad signature":
                return [replace(own, signature=self._source.randbytes(64))]
            case "two endorsements":
                other = replace(own.statement, list_hash=ListHash(random_hash))
                both = [own, sign(replace(own, statement=other), self._signer)]
                return self._source.sample(both, 2)
            case "replayed endorsement":
                return self._replayed(own, before) or [own]
        return [own]

    def _replayed(self, own: Endorsement, before: list[Endorsement]) -> list[Endorsement]:
        """An old one of its own, its old signature under the new statement, and another's."""
        old = [each for each in before if each.batch_id != own.batch_id][:1]
        others = [decode(each, Endorsement) for each in self._seen(Endorsement.KIND)]
        return [
            *old,
            *(replace(own, signature=each.signature) for each in old),
            *[each for each in others if each.batch_id == own.batch_id][:1],
        ]

    def _open(self, certified: CertifiedList) -> list[bytes]:
        if self._how == "withhold shares":
            return []
        public = self._setting.public
        tallies = read_ciphertexts(public, certified.tallies)
        key_share = self._setting.key.shares[self._index - 1]
        shares = make_decryption_shares(public, key_share, tallies)
        if self._how in ("wrong shares", "unproven shares"):
            unit = random_unit(public.modulus, self._source.randbytes)
            elements = tuple(each * unit % public.share_modulus for each in shares.elements)
            shares = replace(shares, elements=elements)
        self._shares[certified.list_hash] = shares
        unsigned = SignedShares(
            task_id=certified.task_id,
            batch_id=certified.batch_id,
            list_hash=ListHash(bytes(32)) if self._how == "other list" else certified.list_hash,
            teacher=self._index,
            shares=shares.to_bytes(public),
        )
        return [encode(sign(unsigned, self._signer))]

    def _prove(self, asked: ProofRequest) -> list[bytes]:
        if self._how == "unproven shares" or asked.list_hash not in self._shares:
            return []
        public = self._setting.public
        proof = prove_shares(
            public,
            self._setting.key.shares[self._index - 1],
            read_ciphertexts(public, asked.tallies),
            self._shares[asked.list_hash],
            context=share_context(asked.task_id, asked.batch_id, asked.list_hash),
            randomness=self._source.randbytes,
        )
        unsigned = SignedShareProof(
            task_id=asked.task_id,
            batch_id=asked.batch_id,
            list_hash=asked.list_hash,
            teacher=self._index,
            proof=proof.to_bytes(public),
        )
        return [encode(sign(unsigned, self._signer))]

    def _any_entries(self, size: int) -> list[int]:
        bound = self._setting.task.entry_bound
        return [self._source.randint(0, bound) for _ in range(size)]

    def _cast(
        self,
        batch: BatchId,
        entries: list[int],
        *,
        claimed: int | None = None,
        context: bytes | None = None,
    ) -> bytes:
        modulus = self._setting.public.plaintext_modulus
        return cast_anything(
            self._setting,
            self._index,
            batch,
            [each % modulus for each in pack_unchecked(self._setting, entries)],
            source=self._source.randbytes,
            claimed=claimed,
            context=context,
        )


def copy_as_power(setting: Setting, victim: bytes, index: int, source: Random) -> bytes:
    """A victim's ballot raised to a power, with the victim's proof raised likewise: the best guess.

    If it were counted, the victim's entries would show in the high bits of the sum.
    """
    public, ballot = setting.public, decode(victim, Ballot)
    power = 1 << source.randint(1, 200)
    ciphertexts = [
        Ciphertext(gmpy2.powmod(each, power, public.ciphertext_modulus))
        for each in read_ciphertexts(public, ballot.ciphertexts)
    ]
    proof = BallotProof.from_bytes(public, ballot.proof)
    raised = BallotProof(
        commitment=gmpy2.powmod(proof.commitment, power, public.modulus),
        response=gmpy2.powmod(proof.response, power, public.modulus),
    )
    copied = replace(
        ballot,
        teacher=index,
        ciphertexts=write_ciphertexts(public, ciphertexts),
        proof=raised.to_bytes(public),
    )
    return encode(sign(copied, setting.signer(index)))
