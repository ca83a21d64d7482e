"""MNIST files: found, checked, refused, or asked for by name."""

import gzip
import hashlib
import struct
import threading
import urllib.error
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dppp.errors import DatasetUnavailable, InputError
from dppp.experiments.datasets import files as data_files
from dppp.experiments.datasets.files import DataFile, find_file
from dppp.experiments.datasets.mnist import MNIST_FILES, load_mnist, parse_idx


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

    monkeypatch.setattr(data_files, "_fetch", offline)
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
    monkeypatch.setattr(data_files, "_fetch", lambda address: answers[address.rsplit("/", 1)[-1]])
    assert find_file(files[1]) == contents[1]
    assert files[1].path_in(cache / "data").read_bytes() == contents[1]
    assert not data.exists()
    answers[files[2].name] = b"something else"
    with pytest.raises(DatasetUnavailable, match="SHA-256"):
        find_file(files[2])
    assert not files[2].path_in(cache / "data").exists()


def test_only_https_is_fetched():
    with pytest.raises(InputError, match="https"):
        data_files._fetch("file:///etc/hostname")


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


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A web server on loopback that serves what is put into a mapping, and an empty cache."""
    monkeypatch.delenv("DPPP_DATA", raising=False)
    monkeypatch.setenv("DPPP_CACHE", str(tmp_path / "cache"))
    served: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = served.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", served, tmp_path / "cache" / "data"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_fetched_from_its_home_over_the_wire(home, files, contents):
    address, served, cache = home
    file = replace(files[0], homes=(address + "gone/", address))
    served[f"/{file.name}"] = contents[0]
    assert find_file(file) == contents[0]
    served.clear()
    assert find_file(file) == contents[0]
    assert file.path_in(cache).read_bytes() == contents[0]


def test_another_file_at_the_same_address_is_refused_and_not_kept(home, files, contents):
    address, served, cache = home
    file = replace(files[0], homes=(address,))
    served[f"/{file.name}"] = contents[1]
    with pytest.raises(DatasetUnavailable, match=r"SHA-256 is .*\nhint: put it at .*train-images"):
        find_file(file)
    assert not cache.exists()


def test_a_name_with_a_plus_is_asked_for_by_its_quoted_name(home):
    address, served, _ = home
    text = b"a,b\n"
    file = DataFile(
        folder="nsl-kdd",
        name="KDDTest+.txt",
        sha256=hashlib.sha256(text).hexdigest(),
        homes=(address,),
        is_plain_text=True,
    )
    served["/KDDTest%2B.txt"] = b"a,b\r\n"
    assert find_file(file) == text


def test_text_is_found_compressed_and_checked_by_its_text(folders):
    data, _, fetched = folders
    file = DataFile(
        folder="nsl-kdd",
        name="some.txt",
        sha256=hashlib.sha256(b"text\n").hexdigest(),
        homes=(),
        is_plain_text=True,
    )
    packed = file.path_in(data).with_name("some.txt.gz")
    packed.parent.mkdir(parents=True)
    packed.write_bytes(gzip.compress(b"text\r\n"))
    assert find_file(file) == b"text\n"
    packed.write_bytes(gzip.compress(b"other\n"))
    with pytest.raises(InputError, match=r"damaged or another file"):
        find_file(file)
    packed.write_bytes(b"no gzip")
    with pytest.raises(InputError, match="not a gzip file"):
        find_file(file)
    assert not fetched
