"""Twenty organisations sort a new support ticket, each with its own tickets and language model.

The language model here is a stand-in that this file starts on loopback: it speaks the chat
completions interface and picks the example in its prompt that shares most words with the question.
A teacher puts the address of its own server in its place.
"""

import http.server
import json
import tempfile
import threading
from pathlib import Path

import numpy as np

from dppp import Federation, calibrate, create_federation, in_process
from dppp.protocol.columns import Column, ColumnType
from dppp.protocol.inputs import MixedRows
from dppp.service.process.config import ChatModel
from dppp.service.teacher.models.chat.voters import make_voters

ORGANISATIONS, VOTES = 20, 3
WORDS = {
    "billing": ["invoice", "refund", "charged", "card", "payment", "receipt"],
    "network": ["wifi", "router", "slow", "disconnected", "cable", "signal"],
    "account": ["password", "login", "locked", "email", "username", "reset"],
}
COLUMNS = [Column(name="ticket", type=ColumnType(kind="text"))]
NEW = [
    "I was charged twice, please send a refund for the second invoice",
    "since this morning the wifi is slow and the router is disconnected",
    "my login is locked and the password reset never arrives by email",
]


class StandIn(http.server.BaseHTTPRequestHandler):
    calls = 0

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        # As the default template writes them: records with their classes, then the question.
        blocks = question["messages"][0]["content"].split("ticket: ")[1:]
        *examples, asked = blocks
        words = set(asked.split("\n\n")[0].split())
        nearest = max(examples, key=lambda block: len(words & set(block.split())))
        content = nearest.split("class: ")[1].split("\n")[0]
        message = {"role": "assistant", "content": content}
        answer = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        StandIn.calls += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def write_tickets(path, seed):
    """60 made-up tickets of one organisation."""
    choose = np.random.default_rng(seed)
    lines = ["ticket,class"]
    for place in range(60):
        name = list(WORDS)[place % 3]
        lines.append(f"{' '.join(choose.choice(WORDS[name], 3))} please help,{name}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
with tempfile.TemporaryDirectory() as folder:
    teachers = []
    for place in range(ORGANISATIONS):
        home = Path(folder) / f"organisation {place}"
        home.mkdir()
        model = ChatModel(  # as [model] in teacher.toml has it
            kind="chat",
            url=f"http://127.0.0.1:{server.server_address[1]}/v1",
            model="stand-in",
            records=write_tickets(home / "tickets.csv", place),
            label="class",
            examples=4,
        )
        teachers.append(
            make_voters(model, class_names=list(WORDS), columns=COLUMNS, votes=VOTES, unit="record")
        )

certificate = calibrate("auto", epsilon=2, delta=1e-5, teachers=20, queries=3, classes=3)
parties = create_federation(
    name="tickets",
    class_names=list(WORDS),
    features=COLUMNS,
    certificate=certificate,
    models=teachers,
    unit="record",
)
federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
answers = federation.ask(MixedRows(COLUMNS, [NEW])).answers
server.shutdown()
server.server_close()
for ticket, answer in zip(NEW, answers, strict=True):
    print(f"{list(WORDS)[answer.label]:8} {answer.counts}  {ticket}")
promise = parties.task.promise
print(f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for one {parties.task.unit}", end="; ")
print(f"{StandIn.calls} calls: {len(NEW)} tickets × {ORGANISATIONS * VOTES} votes")
