"""What models say, after the whole protocol: released counts less the noise that the test knows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tests.protocol.parties import (
    CLASSES,
    RecordedRandomness,
    Setting,
    new_ledger,
    new_teacher,
    seeded,
    set_up,
)

from dppp.federation import Federation, in_process
from dppp.privacy.ledger.store import MemoryStore
from dppp.privacy.sampling import sampling_table
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.votes import Predict

TEACHERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The votes in the release, a row per input and a column per class, and all local notes."""

    votes: list[list[int]]
    notes: list[str]


def count(models: Predict | Sequence[Predict], values: Sequence[float]) -> Counted:
    """Three teachers, one model each or one for all, answer inputs of one feature."""
    setting = set_up(TEACHERS, 0, 0)
    sources = {each: RecordedRandomness(seeded("model", each)) for each in setting.everybody}
    notes: list[str] = []
    teachers = {
        index: new_teacher(
            setting,
            index,
            new_ledger(setting, index, MemoryStore()),
            predict=models if callable(models) else models[index - 1],
            randomness=source,
            notes=notes,
        )
        for index, source in sources.items()
    }
    aggregator = Aggregator(
        task=setting.task,
        public=setting.public,
        signer=setting.aggregator_signer,
        store=MemoryBatchStore(),
    )
    asked = Federation(aggregator=aggregator, deliver=in_process(teachers))
    released = np.array([each.counts for each in asked.ask([[v] for v in values]).answers])
    noise = sum(_noise(setting, source, len(values)) for source in sources.values())
    return Counted(votes=(released - noise).tolist(), notes=notes)


def _noise(setting: Setting, source: RecordedRandomness, queries: int) -> np.ndarray:
    (drawn,) = source.noise(setting.task, queries * len(CLASSES))
    lowest = sampling_table(setting.task.noise).lowest
    return np.array(drawn).reshape(queries, len(CLASSES)) + lowest
