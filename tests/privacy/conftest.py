"""A fresh ledger on each kind of store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import STORES, TEACHER, empty_store

from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import LedgerStore


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerStore]:
    with empty_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def ledger(store: LedgerStore) -> Ledger:
    return Ledger.create(store, teacher=TEACHER)
