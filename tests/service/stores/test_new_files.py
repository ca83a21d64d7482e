"""Files that are written once: all of them or none."""

from pathlib import Path

import pytest

from dppp.errors import InputError
from dppp.service.stores.new_files import NewFile, read_file, write_new_files


def test_when_one_of_them_cannot_be_written_none_is_left(tmp_path: Path) -> None:
    files = [NewFile(name="a", data=b"1"), NewFile(name="no such folder/b", data=b"2")]
    with pytest.raises(InputError, match=f"cannot write to {tmp_path}: No such file"):
        write_new_files(tmp_path, files)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write to .*file/home: Not a directory"):
        write_new_files(tmp_path / "file" / "home", [NewFile(name="a", data=b"1")])


def test_a_file_that_came_in_between_is_neither_overwritten_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b").write_text("precious")
    monkeypatch.setattr("dppp.service.stores.new_files.refuse_to_overwrite", lambda *_: None)
    files = [NewFile(name="a", data=b"1"), NewFile(name="b", data=b"2")]
    with pytest.raises(InputError, match="File exists"):
        write_new_files(tmp_path, files)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("b", "precious")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        read_file(tmp_path / "none")
