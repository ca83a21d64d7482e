"""Teachers that break the rules: colluders with a real key share, a real signer, and the wire.

Each has one way to misbehave and keeps the rules otherwise, but for this: it helps to open any list
that it is shown, as often as it is asked.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import gmpy2
from tests.protocol.parties import CLASSES, Setting, batch_of, cast_anything, pack_unchecked

from dppp.paillier.ballot_proofs import BallotProof
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, add_ballots, read_ciphertexts, write_ciphertexts
from dppp.paillier.groups import absolute
from dppp.paillier.randomness import random_element
from dppp.paillier.share_proofs import prove_shares
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    BatchRequest,
    ListHash,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    list_hash,
    share_context,
)
from dppp.protocol.signing import UNSIGNED, sign, signer_of
from dppp.protocol.wire import decode, encode, kind_of

SeenBallots = Callable[[], list[bytes]]
"""All ballots that have been on the wire so far; the aggregator shows them to its friends."""


class ByzantineTeacher:
    """Teacher `index`, misbehaving in the way that `how` says (operations.py)."""

    def __init__(
        self, setting: Setting, index: int, how: str, *, seen: SeenBallots, source: Random
    ) -> None:
        self._setting = setting
        self._index = index
        self._how = how
        self._seen = seen
        self._source = source
        self._ballots: dict[BatchId, bytes] = {}
        self._shares: dict[ListHash, DecryptionShares] = {}
        self._signer = signer_of(setting.signing_keys[index - 1])

    def handle(self, data: bytes) -> list[bytes]:
        match kind_of(data):
            case BatchRequest.KIND:
                return self._vote(decode(data, BatchRequest))
            case BallotList.KIND:
                return self._open(decode(data, BallotList))
            case ProofRequest.KIND:
                return self._prove(decode(decode(data, ProofRequest).ballot_list, BallotList))
        return []

    def vote_anew(self, batch: BatchId, size: int) -> bytes:
        """Another ballot for a batch: for an aggregator that wants two lists."""
        return self._cast(batch, self._any_entries(size))

    def _vote(self, request: BatchRequest) -> list[bytes]:
        batch = batch_of(self._setting, request)
        size = len(request.queries) * len(CLASSES)
        entries = self._any_entries(size)
        others = [each for each in self._seen() if decode(each, Ballot).batch_id == batch]
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
                sent = others[:1] + self._seen()[:1]
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

    def _open(self, ballot_list: BallotList) -> list[bytes]:
        if self._how == "withhold shares":
            return []
        served = list_hash(ballot_list)
        tally = self._tally(ballot_list)
        key_share = self._setting.key.shares[self._index - 1]
        shares = make_decryption_shares(self._setting.public, key_share, tally)
        if self._how in ("wrong shares", "unproven shares"):
            modulus = self._setting.public.modulus
            unit = random_element(modulus, self._source.randbytes)
            elements = tuple(absolute(each * unit, modulus) for each in shares.elements)
            shares = replace(shares, elements=elements)
        self._shares[served] = shares
        claimed = ListHash(bytes(32)) if self._how == "other list" else served
        unsigned = SignedShares(
            task_id=ballot_list.task_id,
            batch_id=ballot_list.batch_id,
            list_hash=claimed,
            teacher=self._index,
            shares=shares.to_bytes(self._setting.public),
            signature=UNSIGNED,
        )
        return [encode(sign(unsigned, self._signer))]

    def _prove(self, ballot_list: BallotList) -> list[bytes]:
        served = list_hash(ballot_list)
        if self._how == "unproven shares" or served not in self._shares:
            return []
        public = self._setting.public
        proof = prove_shares(
            public,
            self._setting.key.shares[self._index - 1],
            self._tally(ballot_list),
            self._shares[served],
            context=share_context(ballot_list.task_id, ballot_list.batch_id, served),
            random_bytes=self._source.randbytes,
        )
        unsigned = SignedShareProof(
            task_id=ballot_list.task_id,
            batch_id=ballot_list.batch_id,
            list_hash=served,
            teacher=self._index,
            proof=proof.to_bytes(public),
            signature=UNSIGNED,
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

    def _tally(self, ballot_list: BallotList) -> tuple[Ciphertext, ...]:
        public = self._setting.public
        return add_ballots(
            public,
            [
                read_ciphertexts(public, decode(each, Ballot).ciphertexts)
                for each in ballot_list.ballots
            ],
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
        commitment=absolute(gmpy2.powmod(proof.commitment, power, public.modulus), public.modulus),
        response=absolute(gmpy2.powmod(proof.response, power, public.modulus), public.modulus),
    )
    copied = replace(
        ballot,
        teacher=index,
        ciphertexts=write_ciphertexts(public, ciphertexts),
        proof=raised.to_bytes(public),
    )
    return encode(sign(copied, signer_of(setting.signing_keys[index - 1])))
