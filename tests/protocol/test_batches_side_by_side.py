"""Batches of one aggregator do not wait for each other."""

from collections.abc import Sequence

import pytest
from tests.protocol.small import CLASS_NAMES, DEADLINE, NOW, certain

from dppp.federation import Federation, Parties, in_process
from dppp.protocol.events import Output, Released
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import BatchRequest
from dppp.protocol.rows import make_row_secret, row_key_of, seal_rows


def request(parties: Parties, label: int) -> BatchRequest:
    key = row_key_of(make_row_secret(), parties.task.task_id)
    queries = seal_rows(parties.task, key, encode_rows([[float(label), 1.0]], 2))
    return BatchRequest(deadline=DEADLINE, queries=queries)


def finish(parties: Parties, output: Output) -> list[str]:
    """Carry messages until nobody has more to say; the labels that were released."""
    deliver, found = in_process(parties.teachers), list(output.events)
    while output.sends:
        replies = deliver(output.sends, NOW)
        output = Output()
        for teacher, data in replies:
            output += parties.aggregator.receive(teacher, data, now=NOW)
        found += output.events
    return [name for event in found if isinstance(event, Released) for name in names(event)]


def names(event: Released) -> Sequence[str]:
    return [CLASS_NAMES[each.label] for each in event.receipt.answers if each.label is not None]


@pytest.mark.parametrize("is_masked", [False, True])
def test_a_batch_that_nobody_answers_yet_holds_up_no_other(is_masked: bool) -> None:
    parties = certain(is_masked=is_masked)
    federation = Federation(
        aggregator=parties.aggregator, deliver=in_process(parties.teachers), clock=lambda: NOW
    )
    federation.ask([[1.0, 0.0]])  # keys of the epoch are there
    held = [parties.aggregator.start(request(parties, label), now=NOW) for label in (0, 2)]
    (answer,) = federation.ask([[1.0, 5.0]]).answers
    assert answer.label == 1
    assert [finish(parties, each) for each in held[::-1]] == [["perhaps"], ["no"]]
