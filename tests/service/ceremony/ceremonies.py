"""Federations for tests: every step of the real ceremony, on a short key that anyone can factor."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.protocol import small
from tests.small_federation import dealt_key

from dppp.privacy.trust import Trust
from dppp.service.ceremony.assembling import make_federation_file
from dppp.service.ceremony.authority import LIFETIME
from dppp.service.ceremony.coordinator import collect, init_federation
from dppp.service.ceremony.dealing import DealtFederation, deal_federation
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.setup import SetUp, set_up
from dppp.service.ceremony.terms import Terms, make_terms, read_terms
from dppp.service.stores.locations import LedgerFiles

TEACHERS = ("hospital a", "hospital b", "hospital c")
AGGREGATOR, BROKER = "university", "hosting"
LEDGER = LedgerFiles(path=Path("ledger.db"), head=Path("head.json"))
"""In the teacher's home, where it stays apart from all others."""


def terms(**other: object) -> Terms:
    usual: dict[str, object] = {
        "name": "cells",
        "data_id": "breast 2026",
        "class_names": small.CLASS_NAMES,
        "features": small.FEATURES,
        "epsilon": 20.0,
        "delta": 1e-4,
        "queries": 40,
        "noise": "skellam",
        "cryptosystem": "paillier",
    }
    return make_terms(**{**usual, **other})


@dataclass(frozen=True)
class Ceremony:
    """A folder with a coordinator, a home for everybody by name, and what was dealt."""

    root: Path
    dealt: DealtFederation

    @property
    def federation(self) -> FederationFile:
        return self.dealt.federation

    def home(self, name: str) -> Home:
        return Home(folder=self.root / name)

    def share(self, index: int) -> bytes:
        return (self.root / "dealt" / self.dealt.share_files[index - 1]).read_bytes()

    def set_up(self, name: str, **options: object) -> SetUp:
        is_dealt = bool(self.dealt.share_files) and name in TEACHERS
        share = self.share(TEACHERS.index(name) + 1) if is_dealt else None
        given: dict[str, object] = {"share": share, "ledger": LEDGER, **options}
        return set_up(self.home(name), self.federation, self.federation.hash, **given)  # type: ignore[arg-type]


def join_all(root: Path, **other_terms: object) -> None:
    """Up to where the key can be dealt, or the federation file made."""
    init_federation(root / "coordinator", terms(**other_terms))
    requests = [make_home(root / name, name=name) for name in reversed(TEACHERS)]
    requests.append(make_home(root / AGGREGATOR, name=AGGREGATOR, role=Role.AGGREGATOR))
    hosts = ("localhost", "127.0.0.1")
    requests.append(make_home(root / BROKER, name=BROKER, role=Role.BROKER, hosts=hosts))
    collect(root / "coordinator", requests)


def hold_masked(root: Path, **other_terms: object) -> Ceremony:
    """The same under masks: nothing is dealt, and there is no share."""
    join_all(root, cryptosystem="masks", **other_terms)
    federation = make_federation_file(root / "coordinator", root / "dealt")
    return Ceremony(root=root, dealt=DealtFederation(federation=federation, share_files=()))


def hold(root: Path, *, lifetime: timedelta = LIFETIME, **other_terms: object) -> Ceremony:
    """Join, collect and deal; nobody has set up yet. `lifetime` is that of the certificates."""
    join_all(root, **other_terms)
    trust = Trust.with_defaults(len(TEACHERS), read_terms(root / "coordinator").colluders)
    key = dealt_key(trust.teachers, trust.threshold)
    dealt = deal_federation(root / "coordinator", root / "dealt", key=key, lifetime=lifetime)
    return Ceremony(root=root, dealt=dealt)
