"""MNIST files: found, checked, refused, or asked for by name."""

import gzip
import hashlib
import struct
import urllib.error

import numpy as np
import pytest

from dppp.errors import DatasetUnavailable, InputError
from dppp.experiments import datasets
from dppp.experiments.datasets import (
    MNIST_FILES,
    DataFile,
    find_file,
    load_mnist,
    parse_idx,
)


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


ARRAYS = (
    np.arange(3 * 4 * 4).reshape(3, 4, 4),
    np.array([1, 0, 2]),
    np.arange(2 * 4 * 4).reshape(2, 4, 4),
    np.array([2, 1]),
)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A data folder and an empty cache, with downloads cut off."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("DPPP_DATA", str(data))
    monkeypatch.setenv("DPPP_CACHE", str(cache))
    fetched = []

    def offline(address):
        fetched.append(address)
        raise urllib.error.URLError("offline")

    monkeypatch.setattr(datasets, "_fetch", offline)
    return data, cache, fetched


@pytest.fixture
def contents():
    return [gzip.compress(idx(array), mtime=0) for array in ARRAYS]


@pytest.fixture
def files(contents):
    return [
        DataFile(
            folder="mnist",
            name=file.name,
            sha256=hashlib.sha256(content).hexdigest(),
            homes=file.homes,
        )
        for file, content in zip(MNIST_FILES, contents, strict=True)
    ]


def write(root, files, contents):
    for file, content in zip(files, contents, strict=True):
        path = file.path_in(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_the_folder_of_the_variable_is_read(folders, files, contents):
    data, cache, fetched = folders
    write(data, files, contents)
    mnist = load_mnist(files)
    np.testing.assert_array_equal(mnist.train_images, ARRAYS[0])
    np.testing.assert_array_equal(mnist.test_labels, ARRAYS[3])
    assert not fetched
    assert not cache.exists()


def test_the_cache_is_read_when_the_folder_lacks_the_files(folders, files, contents):
    _, cache, fetched = folders
    write(cache / "data", files, contents)
    assert load_mnist(files).train_images.shape == (3, 4, 4)
    assert not fetched


def test_a_damaged_file_is_refused_by_its_checksum(folders, files, contents):
    data, _, fetched = folders
    damaged = contents[0][:-1] + bytes([contents[0][-1] ^ 1])
    write(data, files, [damaged, *contents[1:]])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte.gz is damaged .* SHA-256"):
        load_mnist(files)
    assert not fetched


def test_absent_and_offline_says_which_file_goes_where(folders, files):
    data, _, fetched = folders
    with pytest.raises(DatasetUnavailable) as caught:
        find_file(files[0])
    assert str(data / "mnist" / "train-images-idx3-ubyte.gz") in str(caught.value)
    assert files[0].sha256 in str(caught.value)
    assert len(fetched) == len(files[0].homes)


def test_a_download_is_checked_and_kept_in_the_cache(folders, files, contents, monkeypatch):
    data, cache, _ = folders
    answers = {file.name: content for file, content in zip(files, contents, strict=True)}
    monkeypatch.setattr(datasets, "_fetch", lambda address: answers[address.rsplit("/", 1)[-1]])
    assert find_file(files[1]) == contents[1]
    assert files[1].path_in(cache / "data").read_bytes() == contents[1]
    assert not data.exists()
    answers[files[2].name] = b"something else"
    with pytest.raises(DatasetUnavailable, match="SHA-256"):
        find_file(files[2])
    assert not files[2].path_in(cache / "data").exists()


def test_only_https_is_fetched():
    with pytest.raises(InputError, match="https"):
        datasets._fetch("file:///etc/hostname")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\0", "not an IDX file"),
        (b"\0\0\x08\x03\0\0", "within its header"),
        (idx(ARRAYS[0])[:-1], "holds 47 bytes .* says 48"),
        (idx(ARRAYS[0]) + b"\0", "holds 49 bytes .* says 48"),
    ],
)
def test_what_is_not_idx_is_refused(content, complaint):
    with pytest.raises(InputError, match=complaint):
        parse_idx(content, "some.gz")


def test_images_and_labels_must_belong_together(folders, files, contents):
    data, _, _ = folders
    swapped = [files[0], files[3], files[2], files[1]]
    write(data, files, contents)
    with pytest.raises(InputError, match="do not belong together"):
        load_mnist(swapped)
