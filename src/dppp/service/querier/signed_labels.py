"""Which of a gateway's labels are in receipts that teachers signed.

Used by `dppp query`, so that a gateway that says one label and signs another is noticed.
"""

from collections.abc import Sequence

from dppp.errors import DpppError, GatewayFault, message_of
from dppp.protocol.messages import QueryId, split_query_ids
from dppp.protocol.receipt import Receipt
from dppp.protocol.task import Task
from dppp.protocol.wire import decode
from dppp.service.querier.connection import Labelled


class SignedLabels:
    """The labels in the receipts of one run, by their query ids.

    `task` is the one that the rows were sealed for: a receipt of another is about other rows. That
    a receipt itself holds is for `dppp verify`.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._labels: dict[QueryId, Labelled] = {}

    def find(
        self, receipt: bytes | None, query_ids: Sequence[QueryId], labels: Sequence[Labelled]
    ) -> list[bool]:
        """Which of these rows have their label in a receipt, of this batch or of an earlier one.

        A label that differs from this batch's receipt is refused. Rows that are in no receipt were
        released before.
        """
        for each in labels:
            named = {each.label, *(each.labels or ())} - {None}
            if not named <= set(self._task.class_names) or len(each.counts) != len(
                self._task.class_names
            ):
                raise GatewayFault(
                    "the gateway gave a label that is not a class, or other counts than one for "
                    "each class",
                    hint="use none of its labels, and tell the teachers",
                )
        own = {} if receipt is None else self._read(receipt)
        for place, (query_id, labelled) in enumerate(zip(query_ids, labels, strict=True)):
            if own.get(query_id, labelled) != labelled:
                raise GatewayFault(
                    f"the gateway says another label or other counts for row {place} of the batch "
                    "than its own receipt",
                    hint="trust neither, and tell the teachers",
                )
        self._labels |= own
        return [
            self._labels.get(query_id) == labelled
            for query_id, labelled in zip(query_ids, labels, strict=True)
        ]

    def _read(self, data: bytes) -> dict[QueryId, Labelled]:
        try:
            receipt = decode(data, Receipt)
            task = decode(receipt.task, Task)
            names = dict(enumerate(task.class_names))
            labels = {
                query_id: Labelled(
                    label=None if answer.label is None else names[answer.label],
                    counts=answer.counts,
                    is_flagged=answer.is_flagged,
                    labels=None
                    if answer.labels is None
                    else tuple(names[place] for place in answer.labels),
                    value=answer.value,
                )
                for query_id, answer in zip(
                    split_query_ids(receipt.query_ids), receipt.answers, strict=True
                )
            }
        except (DpppError, ValueError, KeyError) as error:
            raise GatewayFault(
                f"the gateway's receipt is not about these rows: {message_of(error)}"
            ) from error
        if task.task_id != self._task.task_id:
            raise GatewayFault(
                "the gateway's receipt is of another task than the one that it gave the terms of",
                hint="use none of its labels, and tell the teachers",
            )
        return labels
