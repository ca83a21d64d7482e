"""Which of a gateway's labels are in receipts that teachers signed.

Used by `dppp query`, so that a gateway that says one label and signs another is noticed.
"""

from collections.abc import Sequence

from dppp.errors import DpppError, GatewayFault, message_of
from dppp.protocol.inputs import encode_inputs
from dppp.protocol.messages import input_digest
from dppp.protocol.receipt import Receipt
from dppp.protocol.task import Task
from dppp.protocol.wire import decode
from dppp.service.querier.connection import Labelled, Rows

Names = Sequence[str]


class SignedLabels:
    """The labels in the receipts of one run, by the digests of their rows.

    `features` and `classes` are what the gateway called the columns of the rows and of the counts:
    a receipt of a task that has them otherwise is about other rows. That a receipt itself holds is
    for `dppp verify`.
    """

    def __init__(self, *, features: Names, classes: Names) -> None:
        self._features = tuple(features)
        self._classes = tuple(classes)
        self._labels: dict[bytes, Labelled] = {}

    def find(self, receipt: bytes | None, rows: Rows, labels: Sequence[Labelled]) -> list[bool]:
        """Which of these rows have their label in a receipt, of this batch or of an earlier one.

        A label that differs from this batch's receipt is refused. Rows that are in no receipt were
        released before.
        """
        for each in labels:
            is_named = each.label is None or each.label in self._classes
            if not is_named or len(each.counts) != len(self._classes):
                raise GatewayFault(
                    "the gateway gave a label that is not a class, or other counts than one for "
                    "each class",
                    hint="use none of its labels, and tell the teachers",
                )
        own = {} if receipt is None else self._read(receipt)
        digests = [input_digest(each) for each in encode_inputs(rows, len(self._features))]
        for place, (digest, labelled) in enumerate(zip(digests, labels, strict=True)):
            if own.get(digest, labelled) != labelled:
                raise GatewayFault(
                    f"the gateway says another label or other counts for row {place} of the batch "
                    "than its own receipt",
                    hint="trust neither, and tell the teachers",
                )
        self._labels |= own
        return [
            self._labels.get(digest) == labelled
            for digest, labelled in zip(digests, labels, strict=True)
        ]

    def _read(self, data: bytes) -> dict[bytes, Labelled]:
        try:
            receipt = decode(data, Receipt)
            task = decode(receipt.task, Task)
            names = dict(enumerate(task.class_names))
            labels = {
                query.digest: Labelled(
                    label=None if answer.label is None else names[answer.label],
                    counts=answer.counts,
                    is_flagged=answer.is_flagged,
                )
                for query, answer in zip(receipt.queries, receipt.answers, strict=True)
            }
        except (DpppError, ValueError, KeyError) as error:
            raise GatewayFault(
                f"the gateway's receipt is not about these rows: {message_of(error)}"
            ) from error
        if (task.features, task.class_names) != (self._features, self._classes):
            raise GatewayFault(
                "the task of the gateway's receipt has other columns or classes, or in another "
                "order, than the gateway said",
                hint="use none of its labels, and tell the teachers",
            )
        return labels
