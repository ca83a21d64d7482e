"""A chat server for tests: real HTTP on loopback, and no language model behind it.

As it comes, it reads the examples out of the prompt and answers with the class of the one that
shares most words with the question. So what it says depends on what it was sent, and on nothing
else. A test may have it answer in any other way.
"""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Answer = Callable[[http.server.BaseHTTPRequestHandler, dict[str, Any]], None]
TEMPLATE = "classes: $choices\n\n$examples\n\n$question"


class ChatServer(http.server.ThreadingHTTPServer):
    """Answers as the test says, and remembers what it was asked, by whom and how."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []
        self.answer: Answer = answer_by_words

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][0]["content"] for body in self.bodies]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms for an acknowledgement

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers["Authorization"])
        self.server.bodies.append(body)
        self.server.answer(self, body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[ChatServer]:
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(
    handler: http.server.BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def completion(content: object, finish_reason: str = "stop") -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


def saying(content: object, finish_reason: str = "stop") -> Answer:
    return lambda handler, _: reply(handler, completion(content, finish_reason))


def answer_by_words(handler: http.server.BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    reply(handler, completion(nearest_class(body["messages"][0]["content"])))


def nearest_class(prompt: str) -> str:
    """Of a prompt made with TEMPLATE: the class of the example with most words of the question."""
    _, *blocks, question = prompt.split("\n\n")
    asked = set(question.split())

    def shared(block: str) -> int:
        return len(asked & set(block.rpartition("\nclass: ")[0].split()))

    return max(blocks, key=shared).rpartition("\nclass: ")[2]
