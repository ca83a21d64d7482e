"""The same noisy sums without encryption, for fast experiments: protects nobody.

Every vote is visible to this process. Noise comes from the same tables, the budget is kept in the
same ledger, and a known input is answered from store, so what comes out has the same distribution.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dppp.federation import Outcome
from dppp.hashing import hash_parts
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.privacy.sampling import sampling_table
from dppp.protocol.columns import Columns
from dppp.protocol.inputs import decode_rows, encode_rows, join_rows
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.release import Release, choose_label, release_of
from dppp.protocol.votes import Predict, as_models, sum_votes
from dppp.randomness import RandomSource

_TASK = hash_parts("dppp simulated task 1", ())


class SimulatedFederation:
    """Answers like a `Federation`, with the models of all teachers in the clear."""

    def __init__(
        self,
        *,
        certificate: Certificate,
        models: Sequence[Predict | Sequence[Predict]],
        columns: Columns,
        randomness: RandomSource,
        abstain_below: int | None = None,
        question: Question = CHOICE,
    ) -> None:
        self.ledger = Ledger.create(MemoryStore(), teacher="all teachers, simulated")
        promise = certificate.promise
        self.ledger.fix_cap("data", epsilon=promise.epsilon, delta=promise.delta)
        self.ledger.accept("data", Agreement.on_one(certificate, task_id=_TASK))
        self._certificate = certificate
        self._models = tuple(as_models(each) for each in models)
        self._columns = columns
        self._randomness = randomness
        self._abstain_below = abstain_below
        self._question = question
        self._known: dict[bytes, Release] = {}

    def ask(self, rows: Any, *, fresh: bool = False) -> Outcome:
        """Answers to the inputs; charged like real ones."""
        inputs = encode_rows(rows, self._columns)
        new = tuple(dict.fromkeys(each for each in inputs if fresh or each not in self._known))
        if new:
            self._known.update(zip(new, self._release(new), strict=True))
        answers = tuple(self._known[each] for each in inputs)
        return Outcome(answers=answers, receipt=None, transcript=None)

    def unreleased(self, rows: Any) -> list[bytes | None]:
        """The bytes of each row that would be charged if it were asked; None where it is free."""
        inputs = encode_rows(rows, self._columns)
        return [None if each in self._known else each for each in inputs]

    def _release(self, inputs: Sequence[bytes]) -> list[Release]:
        nonce = self._randomness(16)
        ids = [QueryId(hash_parts("dppp simulated query 1", (nonce, each))) for each in inputs]
        batch = ListHash(hash_parts("dppp simulated batch 1", ids))
        self.ledger.record_ballot(_TASK, batch, ids, b"simulated")
        counts = self._noisy_counts(inputs)
        if self._question.kind != "choice":
            votes = sum(len(models) for models in self._models)
            return [release_of(self._question, row, votes) for row in counts]
        return [
            Release(
                label=choose_label(row, batch, each, abstain_below=self._abstain_below), counts=row
            )
            for row, each in zip(counts, ids, strict=True)
        ]

    def _noisy_counts(self, inputs: Sequence[bytes]) -> list[tuple[int, ...]]:
        rows = decode_rows(join_rows(inputs), len(inputs), self._columns)
        classes = self._certificate.promise.classes
        counts = np.zeros((len(rows), classes), dtype=np.int64)
        table = sampling_table(self._certificate.noise)
        for models in self._models:
            counts += sum_votes(models, rows, classes, question=self._question)
            counts += table.draw(counts.size, self._randomness).reshape(counts.shape)
        counts -= self._certificate.noise.sum_of_centres(len(self._models))
        return [tuple(int(count) for count in row) for row in counts]
