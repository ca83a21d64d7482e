"""Several requests of one organisation in one file, with a README for whoever opens it by hand.

An organisation that is a teacher and runs the broker too has a home for each, and sends one file
all the same. It is a zip archive with nothing in it but join requests and the README. Nothing is
unpacked to a disk, and sizes are looked at before anything is read. Used by `dppp join` and
`dppp collect`.
"""

import io
import zipfile
from collections.abc import Sequence

from dppp.errors import FederationError
from dppp.service.ceremony.join_request import JoinRequest

PARCEL = "join-requests.zip"
_README = "README.txt"
_SUFFIX = ".json"
_MOST_FILES = 1_000
_LONGEST_FILE = 2**16
_MAGIC = b"PK\x03\x04"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The same requests make the same bytes."""


def write_parcel(requests: Sequence[JoinRequest]) -> bytes:
    """The archive of these requests."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _README, _readme(requests).encode("utf-8"))
        for each in requests:
            _add(archive, f"{each.fingerprint}{_SUFFIX}", each.to_bytes())
    return out.getvalue()


def read_requests_in(data: bytes) -> tuple[JoinRequest, ...]:
    """The requests in a file: one by itself, or those of a parcel."""
    if not data.startswith(_MAGIC):
        return (JoinRequest.from_bytes(data),)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = _names_in(archive)
            found = tuple(JoinRequest.from_bytes(archive.read(name)) for name in names)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise FederationError(
            f"this archive of join requests cannot be read ({error})", hint="ask for it again"
        ) from error
    if not found:
        raise FederationError("there is no join request in this archive", hint="ask for it again")
    return found


def _names_in(archive: zipfile.ZipFile) -> list[str]:
    """The requests by name; an archive that holds anything else is refused as a whole."""
    entries = archive.infolist()
    for each in entries:
        is_ours = each.filename == _README or each.filename.endswith(_SUFFIX)
        is_plain = each.compress_type == zipfile.ZIP_STORED and each.file_size <= _LONGEST_FILE
        if not is_ours or not is_plain or len(entries) > _MOST_FILES:
            raise FederationError(
                f"this archive holds {each.filename[:80]!r}, which is not as `dppp join` packs it",
                hint="ask for it again, or for the join requests one by one",
            )
    return [each.filename for each in entries if each.filename != _README]


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, date_time=_DATE), data)


def _readme(requests: Sequence[JoinRequest]) -> str:
    lines = [f"  {each.spoken_fingerprint}  {each.role.value}, {each.name}" for each in requests]
    return "\n".join(
        [
            "Requests to join a federation of dppp, of one organisation. They hold public keys and",
            "nothing secret. The coordinator types",
            "",
            "  dppp collect FOLDER join-requests.zip",
            "",
            "sees these fingerprints, and compares them by telephone with what the sender reads,",
            "not with this file:",
            "",
            *lines,
            "",
        ]
    )
