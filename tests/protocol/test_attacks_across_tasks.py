"""Two tasks on one ledger, with the same signing keys: no list of one opens anything of the other.

The tally of task B can be made any number modulo the modulus of task A. The plaintext of the
colluder's ballot in B is free, so the tally is any integer in one known residue class modulo n_B,
and the Chinese remainder theorem puts a victim's ciphertext of A into it. Its proof is true, and
honest teachers endorse the list, in B. Were it then opened with their shares of A's key, A's
aggregator would read a single ballot.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gmpy2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from gmpy2 import mpz
from tests.protocol import parties
from tests.protocol.attacker import take_out
from tests.protocol.parties import CLASSES, Setting, batch_of, endorsed_by, request_for
from tests.small_federation import reply_of, teacher_entries

from dppp.errors import DecryptionError, DpppError, ListNotCertified, WrongTask
from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.paillier.dealer import deal_from_primes, make_primes
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, add_ballots, read_ciphertexts, write_ciphertexts
from dppp.paillier.keys import Decryption
from dppp.paillier.proofs.ballots import prove_ballot
from dppp.paillier.structure import generator_logarithm, lift_root, raise_generator
from dppp.privacy.calibration import calibrate
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    CertifiedList,
    Endorsement,
    Endorser,
    ProofRequest,
    SignedShares,
    ballot_context,
    list_hash,
)
from dppp.protocol.signing import require_certified, sign
from dppp.protocol.task import agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.teacher import PaillierSide

pytestmark = pytest.mark.attack

TEACHERS, COLLUDER, VICTIM = 5, 5, 1


@dataclass(frozen=True, kw_only=True)
class TwoTasks:
    """The same organisations in two tasks, each with its own key and aggregator."""

    one: Setting
    other: Setting
    in_one: dict[int, Teacher]
    in_other: dict[int, Teacher]


@pytest.fixture(scope="module")
def settings() -> tuple[Setting, Setting]:
    identities = tuple(Ed25519PrivateKey.generate() for _ in range(TEACHERS))
    first, second = (_setting(name, identities) for name in ("one", "other"))
    return first, second


def _setting(name: str, identities: tuple[Ed25519PrivateKey, ...]) -> Setting:
    certificate = calibrate(
        "skellam",
        epsilon=30,
        delta=1e-3,
        teachers=TEACHERS,
        colluders=1,
        dropouts=0,
        queries=20,
        classes=len(CLASSES),
    )
    key = deal_from_primes(
        make_primes(512, os.urandom),
        teachers=TEACHERS,
        threshold=certificate.trust.threshold,
        s=1,
        decryption=Decryption.ROOT,
        insecure_testing=True,
    )
    aggregator_key = Ed25519PrivateKey.generate()
    row_keys = [X25519PrivateKey.generate() for _ in identities]
    task = agree(
        name=name,
        data_id=name,
        class_names=CLASSES,
        features=("x",),
        teachers=teacher_entries(identities, row_keys),
        aggregator_key=aggregator_key.public_key().public_bytes_raw(),
        certificate=certificate,
        public=key.public,
    )
    return Setting(
        task=task,
        key=key,
        signing_keys=identities,
        row_keys=tuple(row_keys),
        aggregator_key=aggregator_key,
        table=BlindingTable(key.public, bytes_limit=300_000),
    )


@pytest.fixture
def two(settings: tuple[Setting, Setting]) -> TwoTasks:
    return _begin(settings)


def _begin(settings: tuple[Setting, Setting]) -> TwoTasks:
    """Both tasks at the same teachers, with ledgers in which nothing was asked yet."""
    one, other = settings
    ledgers = {index: _ledger(index, settings) for index in range(1, COLLUDER)}
    return TwoTasks(
        one=one,
        other=other,
        in_one={i: parties.new_teacher(one, i, each) for i, each in ledgers.items()},
        in_other={i: parties.new_teacher(other, i, each) for i, each in ledgers.items()},
    )


def _ledger(index: int, settings: tuple[Setting, Setting]) -> Ledger:
    ledger = Ledger.create(MemoryStore(), teacher=f"teacher {index}")
    for task in (each.task for each in settings):
        ledger.fix_cap(task.data_id, epsilon=task.epsilon, delta=task.delta)
        ledger.accept(task.data_id, Agreement.on_one(task.certificate, task_id=task.task_id))
    return ledger


def _crafted_list(two: TwoTasks, wanted: mpz) -> bytes:
    """A list of the other task, good in every way, whose tally is `wanted` modulo n of the one."""
    setting, public = two.other, two.other.public
    request = request_for(setting, [2.0])
    batch = batch_of(setting, request)
    honest = [
        reply_of(teacher, parties.sent_to(setting, request, index))
        for index, teacher in two.in_other.items()
    ]
    read = [read_ciphertexts(public, decode(each, Ballot).ciphertexts) for each in honest]
    (product,) = add_ballots(public, read)
    ours, theirs = two.one.public.modulus, public.modulus
    while True:
        root = mpz.from_bytes(os.urandom(63), "big")
        lifted = lift_root(public, root)
        start = product * lifted % public.ciphertext_modulus
        residue = start % theirs
        tally = residue + theirs * ((wanted - residue) * gmpy2.invert(theirs, ours) % ours)
        if tally < min(public.ciphertext_modulus, two.one.public.ciphertext_modulus):
            break
    quotient = tally * gmpy2.invert(start, public.ciphertext_modulus) % public.ciphertext_modulus
    plaintext = generator_logarithm(public, quotient)
    ciphertext = Ciphertext(raise_generator(public, plaintext) * lifted % public.ciphertext_modulus)
    blinding = Blinding(exponent=mpz(0), root=root, factor=lifted, shift=mpz(0))
    context = ballot_context(setting.task.task_id, batch, COLLUDER)
    proof = prove_ballot(public, [ciphertext], [blinding], context=context)
    ballot = Ballot(
        task_id=setting.task.task_id,
        batch_id=batch,
        teacher=COLLUDER,
        ciphertexts=write_ciphertexts(public, [ciphertext]),
        proof=proof.to_bytes(public),
    )
    signed = encode(sign(ballot, setting.signer(COLLUDER)))
    return parties.list_of(setting, batch, [*honest, signed])


def _crossed(two: TwoTasks, ballot_list: bytes) -> bytes:
    """The other task's list, certified in the one's name by the one's aggregator."""
    found = decode(ballot_list, BallotList)
    endorsements = [reply_of(each, ballot_list) for each in two.in_other.values()]
    endorsements.append(endorsed_by(two.other, COLLUDER, ballot_list))
    crossed = CertifiedList(
        task_id=two.one.task.task_id,
        batch_id=found.batch_id,
        list_hash=list_hash(found),
        tallies=parties.tallies_of(two.other, found.ballots),
        endorsers=tuple(
            Endorser(teacher=each.teacher, signature=each.signature)
            for each in (decode(data, Endorsement) for data in endorsements)
        ),
    )
    return encode(sign(crossed, two.one.aggregator_signer))


def _read_a_ballot(two: TwoTasks) -> tuple[tuple[int, ...], list[DpppError]]:
    """What the aggregator of the one task opens of one teacher's ballot, and who refused."""
    public = two.one.public
    request = request_for(two.one, [1.0])
    ballot = reply_of(two.in_one[VICTIM], parties.sent_to(two.one, request, VICTIM))
    (victim,) = read_ciphertexts(public, decode(ballot, Ballot).ciphertexts)
    crossed = _crossed(two, _crafted_list(two, victim % public.modulus))
    shares = [make_decryption_shares(public, two.one.key.shares[COLLUDER - 1], [victim])]
    refusals: list[DpppError] = []
    for teacher in two.in_one.values():
        try:
            answer = decode(reply_of(teacher, crossed), SignedShares)
            shares.append(DecryptionShares.from_bytes(public, answer.shares))
        except DpppError as refusal:
            refusals.append(refusal)
    try:
        plaintexts = open_tallies(public, [victim], shares).plaintexts
    except DecryptionError:
        return (), refusals
    return two.one.task.packing.unpack(plaintexts, len(CLASSES), contributions=1), refusals


def test_a_list_of_another_task_opens_nothing_of_this_one(two: TwoTasks) -> None:
    entries, refusals = _read_a_ballot(two)
    assert entries == ()
    assert [type(each) for each in refusals] == [WrongTask] * 4


COMPARED: dict[str, tuple[Callable[..., Any], str]] = {
    "the role": (
        Teacher.open_list,
        "decode(endorsement, Endorsement).task_id != self.task.task_id",
    ),
    "its side of paillier": (
        PaillierSide._statement,
        "(statement.task_id, statement.key_id) != (task.task_id, task.key_id)",
    ),
    "the certificate of the list": (
        require_certified,
        "statement.task_id != task.task_id or is_other_key",
    ),
}
"""Where tasks are compared before anything is opened."""


@pytest.mark.parametrize("left", COMPARED)
def test_wherever_tasks_are_compared_it_is_enough_by_itself(
    left: str, two: TwoTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, (function, defence) in COMPARED.items():
        if place != left:
            take_out(monkeypatch, function, defence, "False")
    entries, refusals = _read_a_ballot(two)
    assert entries == ()
    assert {type(each) for each in refusals} <= {WrongTask, ListNotCertified}
    assert len(refusals) == 4


def test_were_tasks_not_compared_a_single_ballot_would_be_read(
    two: TwoTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function, defence in COMPARED.values():
        take_out(monkeypatch, function, defence, "False")
    entries, _ = _read_a_ballot(two)
    assert len(entries) == len(CLASSES)


def test_stored_answers_of_another_task_are_not_given_away(two: TwoTasks) -> None:
    """Nor proofs of them, to an aggregator that knows the other task's batch and list."""
    ballot_list = _crafted_list(two, mpz(4))
    found = decode(ballot_list, BallotList)
    own = decode(_crossed(two, ballot_list), CertifiedList)
    theirs = CertifiedList(
        task_id=two.other.task.task_id,
        batch_id=own.batch_id,
        list_hash=own.list_hash,
        tallies=own.tallies,
        endorsers=own.endorsers,
    )
    for teacher in two.in_other.values():
        teacher.handle(encode(sign(theirs, two.other.aggregator_signer)), now=0)
    ids: dict[str, Any] = {"task_id": two.one.task.task_id, "batch_id": found.batch_id}
    asked = (
        CertifiedList(**ids, list_hash=own.list_hash, tallies=b"", endorsers=()),
        ProofRequest(**ids, list_hash=own.list_hash, tallies=own.tallies),
    )
    for message in asked:
        data = encode(sign(message, two.one.aggregator_signer))
        for teacher in two.in_one.values():
            with pytest.raises(WrongTask):
                teacher.handle(data, now=0)
