"""An attacker's notebook, 5: faults in a round, who is named for them, and who cannot be framed.

Teachers 1 … 5, of whom 5 colludes with the aggregator; 1, 2, 4 and 5 endorse and answer.

*Faults.* A seal that does not open, a row that is not in the field, another row than the root's,
a wrong sum, a root that is not the one of block 0, a wrong seed row, a seed that is not the one of
its digest: the evidence names the one who did it, and nobody else.

*Frames.* Colluder 5 complains about a good seal, with the true secret of the pair or a false one;
with a proof about another pair, or of another epoch; it shows another row than it was sealed, or a
longer one that the tag can be extended to; it shows another root; it seals other rows than its root
gives, so that every endorser's sum is wrong. Each time 5 is named, and none of 1 … 4.

*What a dispute shows.* The secret of a pair opens the seals between these two and no others; a
shown seal tells its own row and no others. After t withdrawals all roots are known and seed rows
are not enough (`test_what_rows_tell.py`), and roots do not tell seeds (`test_weakened_masks.py`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.masks.field_algebra import parameters_for
from tests.masks.rounds import EPOCH, VOTES_SEED, Round

from dppp.errors import ProofError, SealUnopened
from dppp.masks.ballots import Body, Header, cast, digest_of_seals
from dppp.masks.blame import (
    SealedRow,
    find_wrong_sums,
    is_other_row,
    judge_complaint,
    read_shown_row,
    recompute_dealing,
    row_bytes,
)
from dppp.masks.dealing import Dealing, Preparation, prepare, root_of, sharing_of
from dppp.masks.epoch_keys import Epoch, derive_pair_keys, own_row_key
from dppp.masks.equal_logarithms import prove_pair_secret
from dppp.masks.opening import recover_seeds
from dppp.masks.parameters import FIELD
from dppp.masks.sealing import (
    CONTEXT_BYTES,
    KEY_BYTES,
    TAG_BYTES,
    Purpose,
    ShownSeal,
    open_one,
    show_seal,
)
from dppp.masks.sharing import add_rows, elements_to_bytes

pytestmark = pytest.mark.attack

PARAMETERS = parameters_for(5, 1, 1)
EVERYONE = (1, 2, 3, 4, 5)
FOUR = (1, 2, 4, 5)
COLLUDER = 5
VOTE = np.arange(30, dtype=np.int64) * 7


def fresh_round() -> Round:
    shown = Round(PARAMETERS, EVERYONE)
    shown.cast({each: VOTE + each for each in EVERYONE})
    return shown


def put(shown: Round, dealer: int, prepared: Preparation) -> None:
    ballot = cast(PARAMETERS, prepared, VOTE, votes_seed=VOTES_SEED)
    shown.headers[dealer], shown.bodies[dealer] = ballot


def root(shown: Round, dealer: int) -> bytes:
    return root_of(own_row_key(shown.secrets[dealer], EPOCH), shown.headers[dealer].salt)


def show(shown: Round, seal: SealedRow) -> ShownSeal:
    """What an honest recipient shows of a seal."""
    return show_seal(
        shown.sealing_key(seal.recipient, seal.dealer),
        seal.sealed,
        purpose=seal.purpose,
        dealer=seal.dealer,
        recipient=seal.recipient,
        context=seal.context,
        length=row_bytes(PARAMETERS, seal.purpose),
    )


def complain(shown: Round, seal: SealedRow, *, by: int | None = None) -> int:
    """Who is at fault by a complaint with a true proof, by the recipient or by somebody else."""
    own = shown.secrets[by or seal.recipient]
    other = shown.keys[seal.dealer]
    secret, proof = prove_pair_secret(own, other, EPOCH.to_bytes())
    return judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=secret, proof=proof)


@dataclass(slots=True)
class Dispute:
    """The dispute after t withdrawals: all dealers show roots, wrong endorsers show seals."""

    shown: Round
    roots: dict[int, bytes] = field(default_factory=dict)
    endorsed: dict[int, bytes] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)

    def judge(self) -> set[int]:
        dealings = {each: self._recompute(each) for each in EVERYONE}
        known = {each: found for each, found in dealings.items() if found is not None}
        if len(known) < len(dealings):
            return self.named
        endorsed = {each: self.shown.endorse(each) for each in FOUR} | self.endorsed
        for endorser in find_wrong_sums(known, endorsed):
            self._hear(endorser, known, endorsed[endorser])
        return self.named

    def _recompute(self, dealer: int) -> Dealing | None:
        said = self.roots.get(dealer, root(self.shown, dealer))
        try:
            return recompute_dealing(PARAMETERS, EPOCH, self.shown.headers[dealer], said)
        except ProofError:
            self.named.add(dealer)
            return None

    def _hear(self, endorser: int, dealings: Mapping[int, Dealing], said: bytes) -> None:
        """A wrong sum is excused by other rows than the roots', if it is the sum of what is shown.

        Whoever sealed those is named in any case.
        """
        rows = []
        for dealer, dealing in dealings.items():
            seal = self.shown.seal(dealer, endorser, Purpose.SECRET_ROW)
            shown = show(self.shown, seal)
            rows.append(np.frombuffer(shown.row, dtype="<u2").astype(np.uint16))
            if is_other_row(dealing, seal, shown):
                self.named.add(dealer)
        if elements_to_bytes(add_rows(np.stack(rows))) != said:
            self.named.add(endorser)


def with_other_row(rows: NDArray[np.uint16], recipients: tuple[int, ...]) -> NDArray[np.uint16]:
    changed = rows.astype(np.int64)
    for each in recipients:
        changed[each - 1, 0] = (changed[each - 1, 0] + 1) % FIELD
    return changed.astype(np.uint16)


def with_wrong_secret_rows(prepared: Preparation, recipients: tuple[int, ...]) -> Preparation:
    rows = with_other_row(prepared.dealing.rows, recipients)
    return replace(prepared, dealing=replace(prepared.dealing, rows=rows))


def with_wrong_seed_rows(prepared: Preparation, recipients: tuple[int, ...]) -> Preparation:
    return replace(prepared, seed_rows=with_other_row(prepared.seed_rows, recipients))


def reseal(body: Body, part: str, position: int, seal: bytes) -> Body:
    whole: bytes = getattr(body, part)
    start = position * len(seal)
    return replace(body, **{part: whole[:start] + seal + whole[start + len(seal) :]})


def put_seal(shown: Round, dealer: int, recipient: int, seal: bytes) -> None:
    """The dealer's ballot with another seal of a row of its secret, under its signature."""
    body = reseal(shown.bodies[dealer], "secret_seals", recipient - 1, seal)
    header: Header = shown.headers[dealer]
    shown.bodies[dealer] = body
    digest = digest_of_seals(body.secret_seals)
    shown.headers[dealer] = replace(header, secret_seals_digest=digest)


def test_after_an_honest_round_a_dispute_names_nobody() -> None:
    shown = fresh_round()
    assert Dispute(shown).judge() == set()
    for purpose in Purpose:
        seal = shown.seal(2, 1, purpose)
        assert read_shown_row(seal, show(shown, seal))


@pytest.mark.parametrize("recipient", [1, 2, 3, 4])
def test_a_seal_that_does_not_open_names_its_dealer(recipient: int) -> None:
    shown = fresh_round()
    length = row_bytes(PARAMETERS, Purpose.SECRET_ROW) + TAG_BYTES
    put_seal(shown, COLLUDER, recipient, bytes(length))
    with pytest.raises(SealUnopened) as caught:
        shown.endorse(recipient)
    assert caught.value.dealers == (COLLUDER,)
    assert complain(shown, shown.seal(COLLUDER, recipient, Purpose.SECRET_ROW)) == COLLUDER


def test_a_seal_under_another_key_names_its_dealer() -> None:
    """It opens under the key that the dealer would show, but not under the pair's."""
    shown = fresh_round()
    keys = shown.dealer_keys(COLLUDER)
    false = (bytes(KEY_BYTES), *keys.sealing_keys[1:])
    put(shown, COLLUDER, prepare(PARAMETERS, replace(keys, sealing_keys=false)))
    assert complain(shown, shown.seal(COLLUDER, 1, Purpose.SECRET_ROW)) == COLLUDER
    assert complain(shown, shown.seal(COLLUDER, 1, Purpose.SEED_ROW)) == COLLUDER


@pytest.mark.parametrize("value", [FIELD, 2**16 - 1])
def test_a_row_that_is_not_in_the_field_names_its_dealer(value: int) -> None:
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(COLLUDER))
    rows = prepared.dealing.rows.copy()
    rows[0, 0] = value
    put(shown, COLLUDER, replace(prepared, dealing=replace(prepared.dealing, rows=rows)))
    assert complain(shown, shown.seal(COLLUDER, 1, Purpose.SECRET_ROW)) == COLLUDER
    assert complain(shown, shown.seal(COLLUDER, 2, Purpose.SECRET_ROW)) == 2


@pytest.mark.parametrize("recipients", [(1,), (2, 4), (1, 2, 4, 5)])
def test_other_rows_than_the_root_gives_name_their_dealer(recipients: tuple[int, ...]) -> None:
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(COLLUDER))
    put(shown, COLLUDER, with_wrong_secret_rows(prepared, recipients))
    assert Dispute(shown).judge() == {COLLUDER}


def test_a_wrong_sum_names_its_endorser() -> None:
    shown = fresh_round()
    honest = shown.endorse(COLLUDER)
    wrong = bytes([honest[0] ^ 1]) + honest[1:]
    assert Dispute(shown, endorsed={COLLUDER: wrong}).judge() == {COLLUDER}


def test_a_wrong_sum_is_not_excused_by_another_colluders_wrong_row() -> None:
    """Dealer 4 colludes as well here, and takes the blame for a sum that its row does not give."""
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(4))
    put(shown, 4, with_wrong_secret_rows(prepared, (COLLUDER,)))
    assert Dispute(shown).judge() == {4}
    rubbish = bytes(len(shown.endorse(COLLUDER)))
    assert Dispute(shown, endorsed={COLLUDER: rubbish}).judge() == {4, COLLUDER}


@pytest.mark.parametrize("false_root", [bytes(32), b"", bytes(31)])
def test_a_root_that_does_not_give_block_0_names_its_dealer(false_root: bytes) -> None:
    assert Dispute(fresh_round(), roots={COLLUDER: false_root}).judge() == {COLLUDER}


def test_a_check_block_without_a_root_names_its_dealer() -> None:
    """All its rows are right and S fits; but nothing that it can show gives this block."""
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(COLLUDER))
    other = prepare(PARAMETERS, shown.dealer_keys(COLLUDER))
    put(shown, COLLUDER, replace(prepared, dealing=other.dealing))
    assert Dispute(shown).judge() == {COLLUDER}


def judge_seeds(shown: Round, answers: dict[int, list[bytes]]) -> set[int]:
    """The dispute after rows that do not give a seed: answerers show the seals of its dealer."""
    digests = [shown.headers[each].seed_digest for each in EVERYONE]
    _, wrong = recover_seeds(PARAMETERS, answers, digests)
    named = set()
    for position in wrong:
        dealer = EVERYONE[position]
        liars = {
            each
            for each in answers
            if read_shown_row(*shown_pair(shown, dealer, each)) != answers[each][position]
        }
        named |= liars or {dealer}
    return named


def shown_pair(shown: Round, dealer: int, recipient: int) -> tuple[SealedRow, ShownSeal]:
    seal = shown.seal(dealer, recipient, Purpose.SEED_ROW)
    return seal, show(shown, seal)


def answers_of(shown: Round) -> dict[int, list[bytes]]:
    return {each: list(shown.answer(each)) for each in FOUR}


def test_a_wrong_seed_row_names_who_answered_it() -> None:
    shown = fresh_round()
    answers = answers_of(shown)
    assert judge_seeds(shown, answers) == set()
    answers[COLLUDER][1] = bytes(len(answers[COLLUDER][1]))
    assert judge_seeds(shown, answers) == {COLLUDER}


@pytest.mark.parametrize("recipients", [(1,), (1, 2), (1, 2, 3, 4, 5)])
def test_seed_rows_that_miss_the_digest_name_their_dealer(recipients: tuple[int, ...]) -> None:
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(COLLUDER))
    put(shown, COLLUDER, with_wrong_seed_rows(prepared, recipients))
    assert judge_seeds(shown, answers_of(shown)) == {COLLUDER}


@pytest.mark.parametrize("purpose", Purpose)
def test_a_complaint_about_a_good_seal_names_the_complainer(purpose: Purpose) -> None:
    shown = fresh_round()
    assert complain(shown, shown.seal(2, COLLUDER, purpose)) == COLLUDER


def test_a_complaint_with_another_secret_names_the_complainer() -> None:
    shown = fresh_round()
    seal = shown.seal(2, COLLUDER, Purpose.SECRET_ROW)
    own = shown.secrets[COLLUDER]
    secret, proof = prove_pair_secret(own, shown.keys[2], EPOCH.to_bytes())
    for false in (bytes(32), bytes(31), shown.keys[2].public, shown.keys[COLLUDER].public):
        found = judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=false, proof=proof)
        assert found == COLLUDER
    for false in (b"", bytes(65), proof[:-1], proof[:1] + bytes(64)):
        found = judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=secret, proof=false)
        assert found == COLLUDER


def test_a_proof_about_another_pair_names_the_complainer() -> None:
    """5 holds the secret that it shares with 4 against a seal of 2."""
    shown = fresh_round()
    seal = shown.seal(2, COLLUDER, Purpose.SECRET_ROW)
    own = shown.secrets[COLLUDER]
    secret, proof = prove_pair_secret(own, shown.keys[4], EPOCH.to_bytes())
    assert judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=secret, proof=proof) == 5


def test_a_proof_of_another_epoch_names_the_complainer() -> None:
    shown = fresh_round()
    length = row_bytes(PARAMETERS, Purpose.SECRET_ROW) + TAG_BYTES
    put_seal(shown, 2, COLLUDER, bytes(length))
    seal = shown.seal(2, COLLUDER, Purpose.SECRET_ROW)
    before = Epoch(task_id=EPOCH.task_id, number=EPOCH.number - 1)
    own = shown.secrets[COLLUDER]
    secret, proof = prove_pair_secret(own, shown.keys[2], before.to_bytes())
    assert judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=secret, proof=proof) == 5
    secret, proof = prove_pair_secret(own, shown.keys[2], EPOCH.to_bytes())
    assert judge_complaint(PARAMETERS, seal, shown.keys, pair_secret=secret, proof=proof) == 2


def test_a_complaint_is_held_against_its_recipient_so_it_must_be_signed_by_it() -> None:
    """What `judge_complaint` cannot know: who sent it, and for which batch.

    5 writes one in the name of 1; or 1 complained about a bad seal of 5, and 5 says the same again
    about a good one of the same epoch.
    """
    shown = fresh_round()
    assert complain(shown, shown.seal(2, 1, Purpose.SECRET_ROW), by=COLLUDER) == 1
    assert complain(shown, shown.seal(COLLUDER, 1, Purpose.SECRET_ROW)) == 1


@pytest.mark.parametrize("purpose", Purpose)
def test_whoever_shows_another_row_or_key_than_was_sealed_is_named(purpose: Purpose) -> None:
    shown = fresh_round()
    seal = shown.seal(2, COLLUDER, purpose)
    true = show(shown, seal)
    other_row = bytes([true.row[0] ^ 1]) + true.row[1:]
    for false in (
        replace(true, row=other_row),
        replace(true, row=b""),
        replace(true, tag_key=bytes(KEY_BYTES)),
        show(shown, shown.seal(3, COLLUDER, purpose)),
        show(shown, shown.seal(2, 1, purpose)),
    ):
        with pytest.raises(ProofError) as caught:
            read_shown_row(seal, false)
        assert caught.value.culprits == (COLLUDER,)


def test_a_tag_that_is_extended_to_a_longer_row_is_refused() -> None:
    """SHA-256 goes on from a tag as it stands, without its key; only the length tells."""
    shown = fresh_round()
    seal = shown.seal(2, COLLUDER, Purpose.SEED_ROW)
    true = show(shown, seal)
    head = len(b"dppp seal tag 2") + 1 + KEY_BYTES + 8 + CONTEXT_BYTES
    padding = sha256_padding(head + len(true.row))
    longer = true.row + padding + b"more"
    context = {"purpose": seal.purpose, "dealer": seal.dealer, "recipient": seal.recipient}
    route = (seal.dealer << 32 | seal.recipient).to_bytes(8, "big")
    tagged = b"dppp seal tag 2" + bytes([seal.purpose]) + true.tag_key + route + seal.context
    assert hashlib.sha256(tagged + true.row).digest() == seal.sealed[-TAG_BYTES:]
    extended = seal.sealed[:-TAG_BYTES] + bytes(len(longer) - len(true.row))
    extended += hashlib.sha256(tagged + longer).digest()
    with pytest.raises(SealUnopened):
        open_one(
            shown.sealing_key(COLLUDER, 2),
            extended,
            context=seal.context,
            length=row_bytes(PARAMETERS, Purpose.SEED_ROW),
            **context,  # type: ignore[arg-type]
        )
    with pytest.raises(ProofError):
        read_shown_row(seal, replace(true, row=longer))


def sha256_padding(length: int) -> bytes:
    zeros = -(length + 9) % 64
    return b"\x80" + bytes(zeros) + (8 * length).to_bytes(8, "big")


def opened_by(shown: Round, key: bytes) -> set[tuple[int, int, Purpose]]:
    """All seals of the round that one sealing key opens."""
    opened = set()
    for dealer in EVERYONE:
        for recipient in EVERYONE:
            for purpose in Purpose:
                seal = shown.seal(dealer, recipient, purpose)
                try:
                    open_one(
                        key,
                        seal.sealed,
                        purpose=purpose,
                        dealer=dealer,
                        recipient=recipient,
                        context=seal.context,
                        length=row_bytes(PARAMETERS, purpose),
                    )
                except SealUnopened:
                    continue
                opened.add((dealer, recipient, purpose))
    return opened


def test_the_secret_of_a_pair_opens_the_seals_between_these_two_and_no_others() -> None:
    """1 complains about 5: what is shown opens nothing that 5 could not open before."""
    shown = fresh_round()
    own, other = shown.secrets[1], shown.keys[COLLUDER]
    secret, _ = prove_pair_secret(own, other, EPOCH.to_bytes())
    key = derive_pair_keys(secret, EPOCH, own.key, other).sealing_key
    between = {(1, COLLUDER), (COLLUDER, 1)}
    assert opened_by(shown, key) == {(*pair, each) for pair in between for each in Purpose}


def test_a_shown_seal_opens_no_seal() -> None:
    """Its tag key is no sealing key, and its stream cannot be told from its tag key."""
    shown = fresh_round()
    true = show(shown, shown.seal(2, 1, Purpose.SECRET_ROW))
    assert opened_by(shown, true.tag_key) == set()
    sealed = shown.seal(2, 1, Purpose.SEED_ROW)
    with pytest.raises(ProofError):
        read_shown_row(sealed, true)


def test_with_all_roots_known_every_seed_is_still_possible_for_t_less_one_rows() -> None:
    """Two dealings of two seeds that agree in all rows that may be known after t withdrawals."""
    sharing = sharing_of(PARAMETERS)
    columns = sharing.columns_for(16)
    drawn = np.arange(sharing.drawn_rows * columns, dtype=np.uint16).reshape(-1, columns)
    one = sharing.deal_from(np.arange(16, dtype=np.int64), drawn)
    other = sharing.deal_from(np.arange(16, dtype=np.int64) - 9, drawn)
    known = PARAMETERS.threshold - 1
    assert (one[:known] == other[:known]).all()
    assert (one[known:] != other[known:]).any()
