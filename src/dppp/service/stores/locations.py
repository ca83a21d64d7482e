"""Where a store is: a file, or a url of PostgreSQL, which is a secret and is kept elsewhere.

Used by configurations, `dppp setup` and `dppp ledger`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from dppp.errors import InputError, MissingExtraError

Location = Path | str
"""A file, or a text like postgresql://name:password@host/database?schema=name."""

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFiles:
    """A teacher's ledger in a file, and the file that remembers its head."""

    path: Path
    head: Path

    @property
    def is_on_one_disk(self) -> bool:
        """Whether a disk that is put back takes both along."""
        first, second = (_device_of(each) for each in (self.path, self.head))
        return first == second


def default_ledger_files() -> LedgerFiles:
    """One ledger per machine and user, so that all federations on the same data share its cap.

    Its head is in another folder: whoever puts an old copy of one back leaves the other.
    """
    return LedgerFiles(
        path=_base_folder("XDG_DATA_HOME", ".local/share") / "dppp" / "ledger.db",
        head=_base_folder("XDG_STATE_HOME", ".local/state") / "dppp" / "ledger.head",
    )


def _base_folder(variable: str, otherwise: str) -> Path:
    """As the XDG base directory specification says, which also ignores relative paths."""
    given = Path(os.environ.get(variable, ""))
    if given.is_absolute():
        return given
    try:
        return Path.home() / otherwise
    except RuntimeError as error:
        raise InputError(
            "this user has no home folder for its ledger", hint="give --ledger and --head"
        ) from error


def read_secret(text: str, folder: Path) -> str | None:
    """What "env:NAME" or "file:PATH" (seen from the folder) point to; None for another text."""
    kind, _, place = text.partition(":")
    if kind == "env":
        if place not in os.environ:
            raise InputError(f"the environment has no variable {place}", hint="set it")
        return os.environ[place]
    if kind == "file":
        return (folder / place).read_text(encoding="utf-8").strip()
    return None


def read_location(text: str) -> Location:
    """A location as people type it: a file, or where the url is; never the url itself."""
    location = read_new_location(text)
    if isinstance(location, Path) and not location.is_file():
        raise InputError(f"there is no file {text}", hint="correct the path")
    return location


def read_new_location(text: str) -> Location:
    """The same of a store that is still to be made."""
    try:
        url = read_secret(text, Path())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise InputError(
            f"cannot read the url in {text}: {reason}", hint="check the path"
        ) from error
    if url is not None:
        require_url(url)
        return url
    if "://" in text:
        raise InputError(
            "a url with its password does not belong on a command line, where others see it",
            hint="put it into a variable or a file and give env:NAME or file:PATH",
        )
    return Path(text)


def require_url(location: str) -> None:
    """Refuse what is not a url of PostgreSQL, or for which the packages are missing."""
    if location.partition("://")[0] not in _SCHEMES:
        raise InputError(  # a mistyped url holds a password too, so it is not repeated
            "a store is given as a Path, or as a text that begins with postgresql://"
        )
    try:
        import psycopg  # noqa: F401, PLC0415
        import sqlalchemy  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "a store in PostgreSQL needs SQLAlchemy and psycopg",
            extra="service",
        ) from error


def _device_of(path: Path) -> int:
    """The file system of a file, or of the folder that it will be made in."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    return there.stat().st_dev
