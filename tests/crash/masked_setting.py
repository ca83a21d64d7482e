"""A federation of five under masks that every process under test knows, and its roles.

One colluder and one dropout. Secrets of epochs are in a file of their own, as a service keeps them.
"""

import functools
from dataclasses import dataclass

from tests.protocol.with_masks.federation import Setting, set_up
from tests.small_federation import seal_table

from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import HeadMemory, LedgerStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore
from dppp.protocol.messages import BatchRequest
from dppp.protocol.question import Question
from dppp.protocol.teacher import Teacher
from dppp.protocol.with_masks.keys import EpochSecrets
from dppp.protocol.with_masks.teacher import MaskKeys

TEACHERS = 5
BATCHES = 2
QUERIES_PER_BATCH = 2
NOW = 1_000_000
DEADLINE = NOW + 600
QUESTIONS = {
    "teacher": Question.of_number(low=0, high=10, levels=10),
    "aggregator": Question.of_labels(most_labels=2),
}
"""By who is killed. The runs under paillier ask for one of several classes."""


@dataclass(frozen=True, kw_only=True)
class MaskedSetting(Setting):
    """What is fixed before the first query, and how roles are made of it."""

    def name(self, teacher: int) -> str:
        return self.task.teachers[teacher - 1].name

    def accept(self, ledger: Ledger) -> Ledger:
        ledger.fix_cap(self.task.data_id, epsilon=self.task.epsilon, delta=self.task.delta)
        agreement = Agreement.on_one(self.task.certificate, task_id=self.task.task_id)
        ledger.accept(self.task.data_id, agreement)
        return ledger

    @property
    def public(self) -> None:
        """There is no key that all ballots are for."""

    def new_ledger(
        self, teacher: int, store: LedgerStore, heads: HeadMemory | None = None
    ) -> Ledger:
        return self.accept(Ledger.create(store, teacher=self.name(teacher), heads=heads))

    def aggregator(self, store: BatchStore) -> Aggregator:
        return Aggregator(task=self.task, signer=self.aggregator_signer, store=store)

    def teacher(self, index: int, ledger: Ledger, secrets: EpochSecrets) -> Teacher:
        return Teacher(
            index=index,
            task=self.task,
            keys=MaskKeys(secrets=secrets),
            signer=self.signer(index),
            row_key=self.row_keys[index - 1],
            ledger=ledger,
            predict=lambda rows: [self._vote(index)] * len(rows),
        )

    def _vote(self, index: int) -> object:
        return [0, 1][: 1 + index % 2] if self.task.question.kind == "labels" else index % 2

    def request(self, number: int) -> BatchRequest:
        """Batch `number`, the same whoever makes it."""
        rows = [[number + 0.5], [number + 0.25]]
        return BatchRequest(
            deadline=DEADLINE, queries=seal_table(self.task, rows, seed=("masked crashes", number))
        )


@functools.cache
def masked_setting(killed: str = "teacher") -> MaskedSetting:
    found = set_up(TEACHERS, 1, 1, name="masked crashes", question=QUESTIONS[killed])
    return MaskedSetting(
        task=found.task,
        signing_keys=found.signing_keys,
        row_keys=found.row_keys,
        aggregator_key=found.aggregator_key,
    )
