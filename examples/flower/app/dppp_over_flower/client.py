"""Runs at each site, next to the SuperNode: hands messages to the teacher's own process."""

from multiprocessing.connection import Client

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from dppp_over_flower.line import receive_parcels, send_parcels

app = ClientApp()


@app.query("who")
def say_who(message: Message, context: Context) -> Message:
    """Which teacher is here. Nobody has to believe it: what a teacher says is signed."""
    teacher = int(context.node_config["teacher"])
    return Message(RecordDict({"dppp": ConfigRecord({"teacher": teacher})}), reply_to=message)


@app.query("carry")
def carry(message: Message, context: Context) -> Message:
    """Messages to the teacher, and its answers back."""
    teacher = int(context.node_config["teacher"])
    with Client(str(context.node_config["socket"]), "AF_UNIX") as line:
        send_parcels(line, {teacher: list(message.content["dppp"]["messages"])})
        answers = list(receive_parcels(line)[teacher])
    return Message(RecordDict({"dppp": ConfigRecord({"messages": answers})}), reply_to=message)
