"""Runs at the SuperLink: carries what the aggregator's own process says, until it hangs up."""

import time
from collections.abc import Iterable
from multiprocessing.connection import Client

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from dppp_over_flower.line import Parcels, receive_parcels, send_parcels

ROUND_SECONDS = 120
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One line to the aggregator: a round of messages in, the answers of that round out."""
    with Client(str(context.run_config["socket"]), "AF_UNIX") as line:
        (expected,) = receive_parcels(line)
        nodes = find_teachers(grid, expected)
        send_parcels(line, {index: [] for index in nodes})
        while parcels := receive_parcels(line):
            send_parcels(line, carry(grid, nodes, parcels))


def find_teachers(grid: Grid, expected: int) -> dict[int, int]:
    """The node of each teacher, by the teacher's index."""
    until = time.monotonic() + ROUND_SECONDS
    while len(found := list(grid.get_node_ids())) < expected and time.monotonic() < until:
        time.sleep(0.2)
    asked = [Message(RecordDict(), dst_node_id=node, message_type="query.who") for node in found]
    return {
        int(reply.content["dppp"]["teacher"]): reply.metadata.src_node_id
        for reply in good(grid.send_and_receive(asked, timeout=ROUND_SECONDS))
    }


def carry(grid: Grid, nodes: dict[int, int], parcels: Parcels) -> Parcels:
    """All messages of a teacher go together, so that they cannot overtake each other."""
    messages = [
        Message(
            RecordDict({"dppp": ConfigRecord({"messages": list(parcel)})}),
            dst_node_id=nodes[index],
            message_type="query.carry",
        )
        for index, parcel in parcels.items()
        if index in nodes
    ]
    teachers = {node: index for index, node in nodes.items()}
    return {
        teachers[reply.metadata.src_node_id]: list(reply.content["dppp"]["messages"])
        for reply in good(grid.send_and_receive(messages, timeout=ROUND_SECONDS))
    }


def good(replies: Iterable[Message]) -> list[Message]:
    """A site whose app failed has said nothing; the protocol goes on without it."""
    return [reply for reply in replies if not reply.has_error()]
