"""The key ceremony of a federation under paillier, run by the dealer.

Terms and join requests go in; the federation file and one sealed share per teacher come out. The
dealer's process knows the whole key until it ends. Nothing is written before everything is made,
and nothing is overwritten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from dppp.errors import InputError
from dppp.paillier.dealer import DealtKey, deal, require_dealable
from dppp.service.ceremony.assembling import Joined, plain_names, read_joined
from dppp.service.ceremony.authority import LIFETIME
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import FEDERATION
from dppp.service.ceremony.share_envelope import seal_to
from dppp.service.stores.new_files import PUBLIC, NewFile, refuse_to_overwrite, write_new_files


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtFederation:
    """What a ceremony made: the file for everybody, and the name of each teacher's share file."""

    federation: FederationFile
    share_files: tuple[str, ...]


def deal_federation(
    folder: Path,
    out: Path,
    *,
    key: DealtKey | None = None,
    now: datetime | None = None,
    lifetime: timedelta = LIFETIME,
) -> DealtFederation:
    """Run the ceremony on a coordinator's folder; `key` is for tests, which dealt one before.

    `lifetime` is that of the TLS certificates.
    """
    joined = read_joined(folder)
    _require_paillier(joined, folder)
    require_dealable(
        teachers=joined.trust.teachers,
        threshold=joined.trust.threshold,
        modulus_bits=joined.terms.key_bits,
        s=joined.terms.key_s,
    )
    names = share_files([teacher.name for teacher in joined.teachers])
    refuse_to_overwrite(out, [FEDERATION, *names])
    dealt, certificate = key, joined.calibrate()
    if dealt is None:
        dealt = deal(
            teachers=joined.trust.teachers,
            threshold=joined.trust.threshold,
            modulus_bits=joined.terms.key_bits,
            s=joined.terms.key_s,
        )
    task = joined.agree(certificate, public=dealt.public)
    federation = joined.assemble(task, public=dealt.public, now=now, lifetime=lifetime)
    shares = [
        NewFile(name=name, data=seal_to(member.sealing_key, share, task.task_id))
        for name, member, share in zip(names, federation.teachers, dealt.shares, strict=True)
    ]
    public = NewFile(name=FEDERATION, data=federation.to_bytes(), mode=PUBLIC)
    write_new_files(out, [*shares, public])
    return DealtFederation(federation=federation, share_files=names)


def share_files(names: Sequence[str]) -> tuple[str, ...]:
    """A file name for each teacher: its name in plain letters, and its index in a clash."""
    return tuple(f"{name}.share" for name in plain_names(names, "teacher"))


def _require_paillier(joined: Joined, folder: Path) -> None:
    if joined.terms.cryptosystem != "paillier":
        raise InputError(
            "this federation is under masks, which need no dealer and no key",
            hint=f"make its file with: dppp collect {folder} --out FOLDER",
        )
