"""Files of datasets: from the folder named by DPPP_DATA, else from a cache, else downloaded.

Used by the datasets, and by whatever caches what it computed. Every file has a fixed SHA-256, so
it does not matter where it came from; a damaged file is refused, never used. Nothing is
ever written into the folder of DPPP_DATA.
"""

import gzip
import hashlib
import os
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from dppp.errors import DatasetUnavailable, InputError, message_of

Arrays = dict[str, NDArray[np.generic]]
"""What a cached file holds, by name."""

DATA_VARIABLE = "DPPP_DATA"
CACHE_VARIABLE = "DPPP_CACHE"
_CHUNK_BYTES = 1 << 16
_LOOPBACK = "http://127.0.0.1:"
"""Plain http never leaves the machine there; a mirror of one's own, and the tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file of a dataset: where it lies below a data folder, its checksum, its public homes."""

    folder: str
    name: str
    sha256: str
    homes: tuple[str, ...]
    is_plain_text: bool = False
    """The checksum is of the text with plain line ends; it may lie there compressed, as NAME.gz."""

    def path_in(self, root: Path) -> Path:
        """Where this file lies below a data folder."""
        return root / self.folder / self.name

    def found_in(self, root: Path) -> bytes | None:
        """The bytes that lie below a data folder, unpacked if text, not yet checked."""
        path = self.path_in(root)
        if path.is_file():
            return path.read_bytes()
        packed = path.with_name(path.name + ".gz")
        if self.is_plain_text and packed.is_file():
            return _unpack(packed.read_bytes(), str(packed))
        return None


def cache_folder() -> Path:
    """Where downloads and computed arrays are kept: DPPP_CACHE, else the user's cache."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dppp"


def recipe_path(kind: str, recipe: object, folder: Path | None = None) -> Path:
    """Where what this recipe gives is stored."""
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:16]
    return (folder or cache_folder()) / f"{kind}-{digest}.npz"


def cached_arrays(path: Path, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of a file, made and stored where it is not there yet."""
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    arrays = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.npz")
    np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]
    partial.replace(path)
    return arrays


def find_file(file: DataFile) -> bytes:
    """The checked bytes of a file: from DPPP_DATA, else the cache, else its public homes."""
    given = os.environ.get(DATA_VARIABLE)
    roots = [*([Path(given)] if given else []), cache_folder() / "data"]
    for root in roots:
        found = file.found_in(root)
        if found is not None:
            return _checked(found, file, str(file.path_in(root)))
    content = _download(file, roots[0])
    target = file.path_in(cache_folder() / "data")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(target)
    return content


def _unpack(content: bytes, place: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{place} is not a gzip file: {error}", hint="restore the original file"
        ) from error


def _checked(content: bytes, file: DataFile, place: str) -> bytes:
    if file.is_plain_text:
        content = content.replace(b"\r\n", b"\n")
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"{place} is damaged or another file: its SHA-256 is {found}, expected {file.sha256}",
            hint="delete it and fetch it again",
        )
    return content


def _download(file: DataFile, root: Path) -> bytes:
    reasons = []
    for home in file.homes:
        address = home + urllib.parse.quote(file.name)
        try:
            return _checked(_fetch(address), file, address)
        except (urllib.error.URLError, OSError, InputError) as error:
            reasons.append(f"{address}: {message_of(error)}")
    raise DatasetUnavailable(
        f"{file.name} is missing and could not be downloaded ({'; '.join(reasons)})",
        hint=(
            f"put it at {file.path_in(root)} (SHA-256 {file.sha256}), or set {DATA_VARIABLE} to "
            f"the folder that holds {file.folder}/{file.name}"
        ),
    )


def _fetch(address: str) -> bytes:
    if not address.startswith(("https://", _LOOPBACK)):
        raise InputError(f"{address} is not an https address; datasets are fetched by https only")
    console = Console(stderr=True)
    with (
        urllib.request.urlopen(address, timeout=30) as response,  # noqa: S310
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        total = int(response.headers.get("Content-Length", 0)) or None
        bar = progress.add_task(address.rsplit("/", 1)[-1], total=total)
        chunks = []
        while chunk := response.read(_CHUNK_BYTES):
            chunks.append(chunk)
            progress.update(bar, advance=len(chunk))
    return b"".join(chunks)
