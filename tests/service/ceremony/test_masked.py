"""A federation file under masks: what is in it, what it is refused for, and what a home holds."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.service.ceremony.ceremonies import TEACHERS, Ceremony, hold_masked
from tests.small_federation import dealt_key

from dppp.errors import FederationError, InputError, KeyMaterialError, TaskError
from dppp.protocol.task import DAY_SECONDS
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.json_document import to_text
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.stores.epoch_secrets import open_epoch_secrets


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Ceremony:
    return hold_masked(tmp_path_factory.mktemp("masked"))


def test_the_file_survives_its_bytes(masked: Ceremony) -> None:
    federation = masked.federation
    assert federation.public is None
    assert federation.task.cryptosystem == "masks"
    assert FederationFile.from_bytes(federation.to_bytes()) == federation


def test_a_key_in_a_file_under_masks_is_refused(masked: Ceremony) -> None:
    with pytest.raises(TaskError, match="no key"):
        replace(masked.federation, public=dealt_key(3, 3).public)
    plain = json.loads(masked.federation.to_bytes())
    plain["public_key"] = to_text(dealt_key(3, 3).public.to_bytes())
    with pytest.raises((FederationError, TaskError)):
        FederationFile.from_bytes(json.dumps(plain).encode(), insecure_testing=True)


def test_the_ring_is_that_of_the_terms(tmp_path: Path, masked: Ceremony) -> None:
    usual = masked.federation.task.masks
    other = hold_masked(tmp_path, epoch_seconds=600, labels_per_batch=1).federation.task.masks
    assert usual is not None
    assert other is not None
    assert (usual.epoch_seconds, other.epoch_seconds) == (DAY_SECONDS, 600)
    assert min(usual.security_bits, other.security_bits) >= 128


def test_a_share_has_no_place_in_a_home_under_masks(masked: Ceremony) -> None:
    home = masked.home(TEACHERS[0])
    with pytest.raises(KeyMaterialError, match="no shares"):
        home.open_share(b"anything", masked.federation)
    with pytest.raises(InputError, match="--share"):
        masked.set_up(TEACHERS[0], share=b"anything")
    assert not (home.folder / "teacher.toml").exists()


def test_the_secrets_of_epochs_are_in_the_home_unless_the_operator_says_otherwise(
    masked: Ceremony, tmp_path: Path
) -> None:
    path = masked.set_up(TEACHERS[1]).configuration
    home, text = path.parent, path.read_text(encoding="utf-8")
    assert read_config(path, TeacherConfig).epoch_secrets == home / "epoch-secrets.db"
    path.write_text(text.replace('"epoch-secrets.db"', f'"{tmp_path}/elsewhere.db"'))
    assert read_config(path, TeacherConfig).epoch_secrets == tmp_path / "elsewhere.db"
    without = text.replace('[masks]\nsecrets = "epoch-secrets.db"\n', "")
    assert without != text
    path.write_text(without)
    found = read_config(path, TeacherConfig).epoch_secrets
    assert found == home / "epoch-secrets.db"
    with open_epoch_secrets(found):
        assert stat.S_IMODE(found.stat().st_mode) == 0o600
