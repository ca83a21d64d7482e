"""`dppp setup` and `dppp teacher accept`: nothing is taken in that was not checked."""

import io
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from rich.console import Console
from tests.service.ceremony.ceremonies import AGGREGATOR, BROKER, TEACHERS, Ceremony, hold
from tests.small_federation import dealt_key

from dppp.cli.federation import show_federation
from dppp.errors import (
    BudgetExceeded,
    CapChanged,
    FederationChanged,
    FederationError,
    FirstUseUnsaid,
    InputError,
    KeyMaterialError,
    NoColluders,
    TlsCertificateEnded,
    WrongTeacher,
)
from dppp.service.ceremony.acceptance import Acceptance, accept_task
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import Home
from dppp.service.ceremony.setup import set_up
from dppp.service.ceremony.share_envelope import seal_to
from dppp.service.process.config import AggregatorConfig, TeacherConfig, read_config
from dppp.service.stores.ledgers import inspect_ledger
from dppp.service.stores.locations import default_ledger_files


@pytest.fixture
def fresh(ceremony: Ceremony, tmp_path: Path) -> Ceremony:
    """A copy of the federation in which nobody has set up."""
    root = tmp_path / "copy"
    shutil.copytree(ceremony.root, root)
    return replace(ceremony, root=root)


def files(home: Home) -> set[str]:
    return {path.name for path in home.folder.iterdir()}


def test_everybody_gets_what_it_needs(fresh: Ceremony) -> None:
    for name in (*TEACHERS, AGGREGATOR, BROKER):
        assert fresh.set_up(name).checked
    both = {"federation.json", "authority.pem", "tls.pem"}
    assert both | {"key.share", "teacher.toml"} <= files(fresh.home(TEACHERS[0]))
    assert both | {"aggregator.toml"} <= files(fresh.home(AGGREGATOR))
    assert both | {"nats.conf"} <= files(fresh.home(BROKER))
    share = fresh.home(TEACHERS[2]).folder / "key.share"
    assert stat.S_IMODE(share.stat().st_mode) == 0o600
    opened = fresh.home(TEACHERS[2]).unsealed_share(fresh.federation)
    assert fresh.federation.public is not None
    assert (opened.index, opened.key_id) == (3, fresh.federation.public.key_id)


def test_the_configurations_can_be_read_as_they_are(fresh: Ceremony) -> None:
    task = fresh.federation.task
    teacher = read_config(fresh.set_up(TEACHERS[0]).configuration, TeacherConfig)
    assert teacher.home == teacher.federation.parent == fresh.home(TEACHERS[0]).folder
    assert teacher.federation_hash == fresh.federation.hash.hex()
    assert teacher.broker.servers == ("tls://localhost:4222", "tls://127.0.0.1:4222")
    assert (teacher.data.id, teacher.data.epsilon) == (task.data_id, task.epsilon)
    servers = ["tls://10.0.0.1:7777"]
    path = fresh.set_up(AGGREGATOR, servers=servers).configuration
    assert read_config(path, AggregatorConfig).broker.servers == tuple(servers)


def test_the_querier_in_the_template_is_one_that_is_accepted(fresh: Ceremony) -> None:
    path = fresh.set_up(AGGREGATOR).configuration
    before, mark, after = path.read_text(encoding="utf-8").partition("# [[queriers]]")
    lines, _, rest = after.partition("\n\n")
    entry = (mark + lines).replace("\n# ", "\n").removeprefix("# ").replace("…", "cd" * 32)
    path.write_text(f"{before}{entry}\n\n{rest}", encoding="utf-8")
    (clinic,) = read_config(path, AggregatorConfig).queriers
    assert (clinic.name, clinic.queries, clinic.transcripts) == ("clinic", 500, False)


def test_setting_up_again_overwrites_nothing(fresh: Ceremony) -> None:
    fresh.set_up(TEACHERS[0])
    with pytest.raises(InputError, match="nothing is overwritten"):
        fresh.set_up(TEACHERS[0])


def test_another_hash_is_refused(fresh: Ceremony) -> None:
    before = files(fresh.home(TEACHERS[0]))
    with pytest.raises(FederationChanged, match="compare the hash"):
        set_up(fresh.home(TEACHERS[0]), fresh.federation, b"\0" * 32, share=fresh.share(1))
    assert files(fresh.home(TEACHERS[0])) == before


def test_the_own_keys_must_stand_beside_the_own_name(fresh: Ceremony, tmp_path: Path) -> None:
    """The coordinator replaced a request by one of its own making."""
    other = hold(tmp_path / "other")
    home = other.home(TEACHERS[0])
    with pytest.raises(FederationError, match="to the coordinator again"):
        set_up(home, fresh.federation, fresh.federation.hash, share=fresh.share(1))
    shutil.copy(home.folder / "tls.key", fresh.home(TEACHERS[0]).folder / "tls.key")
    with pytest.raises(FederationError, match="for another key"):
        fresh.set_up(TEACHERS[0])


def test_a_share_that_would_be_sealed_to_another_key_is_refused(fresh: Ceremony) -> None:
    """The coordinator put a sealing key of its own beside the name of a teacher."""
    key = X25519PrivateKey.generate().public_key().public_bytes_raw()
    first, *others = fresh.federation.teachers
    entry, *entries = fresh.federation.task.teachers
    task = replace(fresh.federation.task, teachers=(replace(entry, row_key=key), *entries))
    changed = replace(
        fresh.federation, task=task, teachers=(replace(first, sealing_key=key), *others)
    )
    before = files(fresh.home(TEACHERS[0]))
    with pytest.raises(
        FederationError, match="another sealing key of this teacher than this home's"
    ):
        set_up(fresh.home(TEACHERS[0]), changed, changed.hash, share=fresh.share(1))
    assert files(fresh.home(TEACHERS[0])) == before


def test_the_share_of_another_teacher_is_refused_though_it_opens(fresh: Ceremony) -> None:
    """The dealer sealed the second share to the first teacher: two would vote as one."""
    share = dealt_key(len(TEACHERS), 3).shares[1]
    sealed = seal_to(fresh.federation.teachers[0].sealing_key, share, fresh.federation.task.task_id)
    with pytest.raises(KeyMaterialError, match="share of teacher 2, and this home is teacher 1"):
        fresh.set_up(TEACHERS[0], share=sealed)


def test_a_share_must_be_the_own_and_of_this_key(fresh: Ceremony, tmp_path: Path) -> None:
    foreign = hold(tmp_path / "other").share(1)
    damaged = fresh.share(1)[:-1] + bytes((fresh.share(1)[-1] ^ 1,))
    for share in (fresh.share(2), foreign, damaged, b""):
        with pytest.raises(KeyMaterialError):
            fresh.set_up(TEACHERS[0], share=share)
    with pytest.raises(InputError, match="--share"):
        fresh.set_up(TEACHERS[0], share=None)
    with pytest.raises(InputError, match="not a teacher"):
        fresh.set_up(AGGREGATOR, share=fresh.share(1))
    assert "key.share" not in files(fresh.home(TEACHERS[0]))


def test_certificates_past_their_time_are_refused(fresh: Ceremony) -> None:
    now = datetime.now(UTC)
    for bad in (now - timedelta(days=1), now + timedelta(days=800)):
        with pytest.raises(TlsCertificateEnded, match="set the clock"):
            fresh.set_up(TEACHERS[0], now=bad)


def accept(
    fresh: Ceremony,
    change: Callable[[str], str] = lambda text: text,
    *,
    teacher: str = TEACHERS[0],
    is_first_use: bool = True,
    accept_no_colluders: bool = False,
) -> Acceptance:
    path = fresh.home(teacher).folder / "teacher.toml"
    if not path.exists():
        fresh.set_up(teacher)
    path.write_text(change(path.read_text()))
    return accept_task(
        read_config(path, TeacherConfig),
        is_first_use=is_first_use,
        accept_no_colluders=accept_no_colluders,
        insecure_testing=True,
    )


def test_accepting_reserves_the_whole_task_once(fresh: Ceremony) -> None:
    first, again = accept(fresh), accept(fresh)
    assert (first.is_new_ledger, again.is_new_ledger) == (True, False)
    assert first.data == again.data
    assert first.data.reserved.epsilon == fresh.federation.task.epsilon
    assert [task.queries for task in first.data.tasks] == [fresh.federation.task.queries]
    assert (first.teacher, first.index) == (TEACHERS[0], 1)
    with inspect_ledger(fresh.home(TEACHERS[0]).folder / "ledger.db") as (ledger, _):
        assert ledger.head.index == 2


def test_a_cap_below_the_price_is_refused_before_it_is_fixed(fresh: Ceremony) -> None:
    with pytest.raises(BudgetExceeded, match="the task costs"):
        accept(fresh, lambda text: text.replace("epsilon = 20.0", "epsilon = 19.9"))
    assert "ledger.db" not in files(fresh.home(TEACHERS[0]))
    accept(fresh, lambda text: text.replace("epsilon = 19.9", "epsilon = 40.0"))
    with pytest.raises(CapChanged):
        accept(fresh, lambda text: text.replace("epsilon = 40.0", "epsilon = 50.0"))


def test_another_data_id_is_refused(fresh: Ceremony) -> None:
    with pytest.raises(InputError, match="'lungs'"):
        accept(fresh, lambda text: text.replace('id = "breast 2026"', 'id = "lungs"'))


def test_a_lost_ledger_is_not_made_anew(fresh: Ceremony) -> None:
    accept(fresh)
    (fresh.home(TEACHERS[0]).folder / "ledger.db").unlink()
    with pytest.raises(Exception, match="would forget what was spent"):
        accept(fresh)


def test_a_later_federation_is_paid_from_the_same_ledger(fresh: Ceremony, tmp_path: Path) -> None:
    """As the runbook says for rotation: same name, same ledger, same cap."""
    accept(
        fresh, lambda text: text.replace("epsilon = 20.0", "epsilon = 45").replace("0.0001", "1e-3")
    )
    old = fresh.home(TEACHERS[0]).folder
    later = hold(tmp_path / "later")

    def keep_ledger(text: str) -> str:
        kept = text.replace('"ledger.db"', f'"{old}/ledger.db"').replace(
            '"head.json"', f'"{old}/head.json"'
        )
        return kept.replace("epsilon = 20.0", "epsilon = 45").replace("0.0001", "1e-3")

    second = accept(later, keep_ledger)
    assert not second.is_new_ledger
    assert second.data.reserved.epsilon == 40
    third = hold(tmp_path / "third")
    with pytest.raises(BudgetExceeded):
        accept(third, keep_ledger)


def test_another_federation_file_is_refused(fresh: Ceremony, tmp_path: Path) -> None:
    other: FederationFile = hold(tmp_path / "other").federation
    fresh.set_up(TEACHERS[0])
    (fresh.home(TEACHERS[0]).folder / "federation.json").write_bytes(other.to_bytes())
    with pytest.raises(FederationChanged):
        accept(fresh)


def test_a_task_without_colluders_is_accepted_only_by_name(tmp_path: Path) -> None:
    bare = hold(tmp_path, colluders=0)
    shown = io.StringIO()
    show_federation(Console(file=shown, width=200), bare.federation, None)
    assert "but not against a teacher who sees the counts" in shown.getvalue()
    with pytest.raises(NoColluders, match=r"knows its own noise.*\nhint: .*--accept-no-colluders"):
        accept(bare)
    assert "ledger.db" not in files(bare.home(TEACHERS[0]))
    assert accept(bare, accept_no_colluders=True).is_new_ledger


def test_a_new_ledger_needs_the_word_that_the_data_was_never_used(fresh: Ceremony) -> None:
    with pytest.raises(FirstUseUnsaid, match=r"\[ledger\].*--first-use-of-this-data"):
        accept(fresh, is_first_use=False)
    assert "ledger.db" not in files(fresh.home(TEACHERS[0]))
    accept(fresh, is_first_use=True)
    assert not accept(fresh, is_first_use=False).is_new_ledger  # once is enough


def in_the_ledger_of(other: Ceremony) -> Callable[[str], str]:
    """One ledger for both federations."""
    folder = other.home(TEACHERS[0]).folder

    def change(text: str) -> str:
        for name in ("ledger.db", "head.json"):
            text = text.replace(f'"{name}"', f'"{folder}/{name}"')
        return text

    return change


def test_data_under_a_new_name_needs_the_same_word(fresh: Ceremony, tmp_path: Path) -> None:
    """Or the same data would have a second cap, in the same ledger."""
    accept(fresh)
    renamed = hold(tmp_path / "renamed", data_id="breast 2027")
    with pytest.raises(
        FirstUseUnsaid, match=r"'breast 2027'.*it knows: 'breast 2026'.*\nhint: .*--first"
    ):
        accept(renamed, in_the_ledger_of(fresh), is_first_use=False)
    with inspect_ledger(fresh.home(TEACHERS[0]).folder / "ledger.db") as (ledger, _):
        assert [data.data_id for data in ledger.summary().data] == ["breast 2026"]
    assert accept(renamed, in_the_ledger_of(fresh)).data.data_id == "breast 2027"


def test_the_ledger_of_another_teacher_is_refused_with_what_to_do(fresh: Ceremony) -> None:
    accept(fresh)
    with pytest.raises(WrongTeacher, match=r"join as hospital a.*\[ledger\] in teacher.toml"):
        accept(fresh, in_the_ledger_of(fresh), teacher=TEACHERS[1])


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has no ledger yet."""
    for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


def test_two_federations_of_one_user_share_ledger_and_cap(
    fresh: Ceremony, user: Path, tmp_path: Path
) -> None:
    """Each with a ledger in its own home would have let the same data be paid for twice."""
    later = hold(tmp_path / "later")
    places = {each.set_up(TEACHERS[0], ledger=None).ledger for each in (fresh, later)}
    (place,) = places
    assert place == default_ledger_files()
    assert place.path == user / ".local/share/dppp/ledger.db"
    assert place.head == user / ".local/state/dppp/ledger.head"
    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700
    assert not place.path.exists()
    assert accept(fresh).is_new_ledger
    with pytest.raises(BudgetExceeded):
        accept(later, is_first_use=False)
    assert "ledger.db" not in files(fresh.home(TEACHERS[0])) | files(later.home(TEACHERS[0]))


def test_the_default_ledger_follows_the_base_directories(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/data")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    place = default_ledger_files()
    assert str(place.path) == "/srv/data/dppp/ledger.db"
    assert place.head == user / ".local/state/dppp/ledger.head"


def test_no_test_can_touch_the_ledger_of_who_runs_it(fresh: Ceremony) -> None:
    with pytest.raises(InputError, match="--ledger and --head"):
        fresh.set_up(TEACHERS[0], ledger=None)
    assert "teacher.toml" not in files(fresh.home(TEACHERS[0]))
