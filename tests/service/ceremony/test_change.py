"""A change of members: what goes through, and what a coordinator, a thief or a replay gets."""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.service.ceremony.ceremonies import (
    AGGREGATOR,
    BROKER,
    LEDGER,
    TEACHERS,
    Ceremony,
    hold_masked,
)

from dppp.errors import (
    ChangeNotAsked,
    ChangeNotSigned,
    DpppError,
    FederationChanged,
    FederationError,
    FirstUseUnsaid,
    InputError,
    QueriesExhausted,
    TaskSucceeded,
)
from dppp.privacy.ledger.book import Book
from dppp.privacy.ledger.summary import DataSummary
from dppp.service.ceremony.acceptance import accept_task
from dppp.service.ceremony.change import CHANGE, Change, Movement, SignedBy
from dppp.service.ceremony.change_letters import Consent, Rotation
from dppp.service.ceremony.changing import install_change, rotate_keys, sign_change
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.proposing import Wanted, collect_consents, propose_change
from dppp.service.process.config import AggregatorConfig, TeacherConfig, read_config
from dppp.service.stores.ledgers import open_ledger

A, B, C = TEACHERS
NEWCOMER = "hospital d"
ASKED = 7


@dataclass
class Running:
    """Three hospitals that have accepted a task, and each answered a batch of it."""

    root: Path
    ceremony: Ceremony

    @property
    def old(self) -> FederationFile:
        return self.ceremony.federation

    def home(self, name: str) -> Home:
        return self.ceremony.home(name)

    def data_of(self, name: str) -> DataSummary:
        place = self.home(name).folder
        with open_ledger(place / LEDGER.path, head_path=place / LEDGER.head) as ledger:
            (data,) = ledger.summary().data
            return data

    def propose(self, *, queries: int = 30, out: str = "change", **wanted: object) -> Change:
        asked = Wanted(queries=queries, **wanted)  # type: ignore[arg-type]
        return propose_change(self.root / "coordinator", self.old, asked, self.root / out)

    def signed(
        self,
        change: Change,
        names: Sequence[str] = TEACHERS,
        new_homes: dict[str, Home] | None = None,
    ) -> Change:
        new_homes = new_homes or {}
        consents = [
            sign_change(self.home(name), change, change.new.hash, new_home=new_homes.get(name))
            for name in names
        ]
        return change.with_consents([each.signed for each in consents])

    def install(self, name: str, change: Change, *, folder: str = "", **options: object) -> Path:
        home = Home(folder=self.root / (folder or f"{name}, new"))
        given: dict[str, object] = {"old_home": self.home(name), **options}
        return install_change(home, change, change.new.hash, **given).configuration  # type: ignore[arg-type]


def charge(place: Path, task_id: bytes, batch: str, queries: int = ASKED) -> None:
    with open_ledger(place / LEDGER.path, head_path=place / LEDGER.head) as ledger:
        ids = [f"{batch} {number}".encode() for number in range(queries)]
        ledger.record_ballot(task_id, batch.encode(), ids, b"ballot")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Running:
    root = tmp_path_factory.mktemp("change")
    ceremony = hold_masked(root)
    for name in (*TEACHERS, AGGREGATOR, BROKER):
        done = ceremony.set_up(name)
        if name in TEACHERS:
            accept_task(read_config(done.configuration, TeacherConfig), is_first_use=True)
            charge(root / name, ceremony.federation.task.task_id, "asked before the change")
    return Running(root=root, ceremony=ceremony)


@pytest.fixture
def running(before: Running, tmp_path: Path) -> Running:
    """A copy of its own for each test: a change is for good."""
    root = tmp_path / "federation"
    shutil.copytree(before.root, root)
    return Running(root=root, ceremony=replace(before.ceremony, root=root))


def accept(configuration: Path, **options: bool) -> DataSummary:
    return accept_task(read_config(configuration, TeacherConfig), **options).data


def test_a_key_rotates_a_hospital_joins_and_what_was_spent_stays_spent(running: Running) -> None:
    rotation = rotate_keys(running.home(B), running.root / "b new")
    joining = make_home(running.root / NEWCOMER, name=NEWCOMER)
    change = running.propose(requests=(joining,), rotations=(rotation,))
    assert dict(change.movements()) == {
        **dict.fromkeys((A, C, AGGREGATOR, BROKER), Movement.KEPT),
        B: Movement.ROTATED,
        NEWCOMER: Movement.ADDED,
    }
    signed = running.signed(change, new_homes={B: Home(folder=running.root / "b new")})
    assert Change.from_bytes(signed.to_bytes()) == signed
    reserved = running.data_of(A).reserved
    for name, folder in ((A, ""), (B, "b new")):
        data = accept(running.install(name, signed, folder=folder))
        assert (data.reserved, len(data.tasks)) == (reserved, 2)
        assert [(each.answered, each.left) for each in data.tasks] == [(ASKED, 0), (0, 30)]
    options = {"old_home": None, "folder": NEWCOMER, "ledger": LEDGER}
    data = accept(running.install(NEWCOMER, signed, **options), is_first_use=True)  # type: ignore[arg-type]
    assert [each.left for each in data.tasks] == [30]
    aggregator = running.install(AGGREGATOR, signed)
    assert read_config(aggregator, AggregatorConfig).federation_hash == change.new.hash.hex()
    assert "nkey" in running.install(BROKER, signed).read_text()


def test_a_configuration_goes_along_and_the_old_home_stays_as_it_was(running: Running) -> None:
    path = running.home(A).folder / "teacher.toml"
    text = path.read_text().replace("# listen =", "listen =").replace('"info"', '"debug"')
    path.write_text(text)
    signed = running.signed(running.propose())
    found = read_config(running.install(A, signed), TeacherConfig)
    was = read_config(path, TeacherConfig)
    assert path.read_text() == text
    assert (found.ledger, found.data, found.model) == (was.ledger, was.data, was.model)
    assert (found.broker, found.monitoring, found.log_level) == (
        was.broker,
        was.monitoring,
        "debug",
    )
    assert found.epoch_secrets != was.epoch_secrets
    assert running.home(A).federation(None) == running.old


def test_a_hospital_goes_and_its_word_still_counts_for_the_change(running: Running) -> None:
    joining = make_home(running.root / NEWCOMER, name=NEWCOMER)
    change = running.propose(removed=(C,), requests=(joining,))
    assert change.movement_of(C) is Movement.REMOVED
    assert [each.name for each in change.new.teachers] == [A, B, NEWCOMER]
    assert running.signed(change).is_signed
    assert C in [each.name for each in running.signed(change).consents]
    with pytest.raises(FederationError, match="does not have 'hospital c'"):
        running.install(C, running.signed(change))


@pytest.mark.attack
def test_a_coordinator_cannot_pass_its_own_key_off_as_a_hospitals(running: Running) -> None:
    """A request under b's name that b never made is no rotation, and nobody signs it in passing."""
    forged = make_home(running.root / "of the coordinator", name=B)
    change = running.propose(requests=(forged,))
    assert change.movement_of(B) is Movement.REPLACED
    with pytest.raises(ChangeNotAsked, match="its own key did not ask for"):
        sign_change(running.home(A), change, change.new.hash)
    with pytest.raises(ChangeNotAsked, match="which is you"):
        sign_change(running.home(B), change, change.new.hash, replaced=(B,))
    with pytest.raises(ChangeNotAsked, match="is not replaced"):
        sign_change(running.home(A), change, change.new.hash, replaced=(B, C))
    assert sign_change(running.home(A), change, change.new.hash, replaced=(B,)).signed.name == A
    with pytest.raises(FederationError, match="did not sign the rotation"):
        replace(change, rotations=(SignedBy(name=B, signature=bytes(64)),))


@pytest.mark.attack
def test_whoever_stole_a_key_rotates_it_to_its_own_only_past_the_hospital(
    running: Running,
) -> None:
    """The old key's signature is there; what is missing is the new home that it should be."""
    stolen = rotate_keys(running.home(B), running.root / "of the thief")
    own = rotate_keys(running.home(B), running.root / "b new")
    change = running.propose(rotations=(stolen,))
    for new_home in (None, Home(folder=running.root / "b new")):
        with pytest.raises(ChangeNotAsked):
            sign_change(running.home(B), change, change.new.hash, new_home=new_home)
    with pytest.raises(ChangeNotSigned, match="2 teachers"):
        running.install(A, running.signed(change, (A, C)))
    assert own.request.fingerprint != stolen.request.fingerprint


@pytest.mark.attack
def test_words_for_one_change_are_no_words_for_another(running: Running) -> None:
    first = running.propose(out="first")
    second = running.propose(out="second", queries=29)
    consents = [sign_change(running.home(name), first, first.new.hash) for name in TEACHERS]
    with pytest.raises(FederationError, match="another change"):
        collect_consents(running.root / "second", consents)
    with pytest.raises(FederationError, match="did not sign the change"):
        replace(second, consents=tuple(each.signed for each in consents))
    with pytest.raises(FederationError, match="not a teacher of the old task"):
        first.with_consents([replace(consents[0].signed, name=AGGREGATOR)])
    collected = collect_consents(running.root / "first", consents)
    assert collected.is_signed
    assert Change.from_bytes((running.root / "first" / CHANGE).read_bytes()) == collected
    assert Consent.from_bytes(consents[0].to_bytes()) == consents[0]


@pytest.mark.attack
def test_an_old_rotation_is_not_taken_again_after_the_change(running: Running) -> None:
    rotation = rotate_keys(running.home(B), running.root / "b new")
    assert Rotation.from_bytes(rotation.to_bytes()) == rotation
    change = running.propose(rotations=(rotation,))
    again = Wanted(queries=20, rotations=(rotation,))
    with pytest.raises(FederationError, match="another task than this one"):
        propose_change(running.root / "change", change.new, again, running.root / "again")


@pytest.mark.attack
def test_an_old_change_is_not_accepted_after_a_newer_one(running: Running) -> None:
    """Both have all signatures: one who keeps an old change has no second use for it."""
    first = running.signed(running.propose(out="first"))
    second = running.signed(running.propose(out="second", queries=29))
    accept(running.install(A, second))
    configuration = running.install(A, first, folder="back again")
    with pytest.raises(TaskSucceeded, match="no second successor"):
        accept(configuration)


@pytest.mark.attack
def test_a_teacher_that_has_accepted_answers_nothing_new_in_the_old_task(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is left would be spent twice: here 33 queries in each on a reservation of 40."""
    signed = running.signed(running.propose(queries=33))
    accept(running.install(A, signed))
    place, old, new = running.root / A, running.old.task.task_id, signed.new.task.task_id
    with pytest.raises(TaskSucceeded, match="in its place"):
        charge(place, old, "after the change", 1)
    charge(running.root / B, old, "b has not accepted yet", 1)
    charge(place, new, "under the new task", 33)
    with pytest.raises(QueriesExhausted):
        charge(place, new, "one more", 1)
    monkeypatch.setattr(Book, "_require_queries_left", lambda *_: None)  # the defence taken out
    charge(place, old, "the same budget once more", 33)


def test_one_who_accepts_after_more_was_asked_is_refused_what_is_no_longer_left(
    running: Running,
) -> None:
    signed = running.signed(running.propose(queries=33))
    configuration = running.install(A, signed)
    charge(running.root / A, running.old.task.task_id, "just before", 5)
    with pytest.raises(QueriesExhausted, match="has 28 left of 40"):
        accept(configuration)
    assert [each.left for each in running.data_of(A).tasks] == [28]


def test_nothing_is_set_up_or_accepted_before_enough_have_signed(running: Running) -> None:
    change = running.propose()
    few = running.signed(change, (A, B))
    with pytest.raises(ChangeNotSigned, match="it takes 3"):
        running.install(A, few)
    configuration = running.install(A, running.signed(change))
    (configuration.parent / CHANGE).write_bytes(few.to_bytes())
    with pytest.raises(ChangeNotSigned):
        accept(configuration)
    (configuration.parent / CHANGE).unlink()
    with pytest.raises(ChangeNotSigned, match="dppp change install"):
        accept(configuration)


def test_a_hospital_that_was_there_does_not_begin_a_new_ledger(running: Running) -> None:
    configuration = running.install(A, running.signed(running.propose()))
    text = configuration.read_text().replace(str(running.root / A), str(configuration.parent))
    configuration.write_text(text)
    with pytest.raises(FirstUseUnsaid, match="was a teacher of the task before"):
        accept(configuration, is_first_use=True)
    assert not (configuration.parent / LEDGER.path).exists()


def test_a_change_keeps_question_price_noise_and_authority(running: Running) -> None:
    change = running.propose()
    task = change.new.task
    assert task.noise.variance >= running.old.task.noise.variance
    assert (task.epsilon, task.delta) == (running.old.task.epsilon, running.old.task.delta)
    with pytest.raises(FederationError, match="more queries or less noise"):
        replace(change, old=change.new, new=_succeeding(change.new, running.old))
    with pytest.raises(FederationError, match="does not say that it takes the place"):
        replace(change, new=running.old)
    with pytest.raises(InputError, match="paid for 40 queries"):
        running.propose(queries=41, out="more")
    with pytest.raises(InputError, match="no 'hospital x' to remove"):
        running.propose(removed=("hospital x",), out="other")


def _succeeding(old: FederationFile, new: FederationFile) -> FederationFile:
    return replace(new, task=replace(new.task, succeeds=old.task.task_id))


def test_another_hash_than_the_one_compared_is_refused(running: Running) -> None:
    change = running.propose()
    with pytest.raises(FederationChanged):
        sign_change(running.home(A), change, bytes(32))
    with pytest.raises(FederationChanged):
        install_change(Home(folder=running.root / "x"), running.signed(change), bytes(32))


def test_no_damaged_letter_is_taken_for_a_sound_one(running: Running) -> None:
    """Each byte that is read is covered by a signature, a certificate or the one form."""
    rotation = rotate_keys(running.home(B), running.root / "b new")
    change = running.propose(rotations=(rotation,))
    consent = sign_change(running.home(A), change, change.new.hash)
    letters = (rotation, consent, change.with_consents([consent.signed]))
    for letter in letters:
        data = letter.to_bytes()
        for place in range(0, len(data), max(1, len(data) // 40)):
            damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            with contextlib.suppress(DpppError):
                found = type(letter).from_bytes(damaged)
                assert isinstance(found, Consent | Rotation)  # checked against the change, later
                assert found != letter
