"""A connection to the broker (NATS): mutual TLS, an nkey for identity, a subject for each speaker.

Used by teachers and aggregators; both dial out. TLS ends at the broker, so its operator

- sees who talks, when, and how much, and can drop, delay and repeat messages;
- reads what is not encrypted for somebody: the rows in a request, and the decryption shares, which
  together open the noisy counts of a batch, but no single ballot;
- can say something under a teacher's subject, from which an aggregator takes the sender. It is
  dropped, since the teacher did not sign it, and the teacher is not blamed for it;
- cannot make, change or read a ballot, and cannot ask anything in the aggregator's name: requests
  and lists are signed with the aggregator's key, which is in the task. So it spends no budget.

An honest broker keeps a teacher from publishing under another's subject: its configuration is in
ceremony/configurations.py.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from dppp.errors import RunnerStopped
from dppp.service.process.log_throttle import LogThrottle

log = logging.getLogger("dppp.broker")

Handler = Callable[[Msg], Awaitable[None]]

QUEUE_GROUP = "aggregators"
PRESENCE = "presence"
"""Where a teacher says that it is here."""
_OUTBOUND_BYTES = 64 * 2**20
_RETRY_SECONDS = 2
_CONNECT_SECONDS = 15
_PING_SECONDS = 20
_MOST_WAITING = 1_024
_WAITING_BYTES = 64 * 2**20
_SAY_AGAIN_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccess:
    """Where the broker is and who we are to it."""

    servers: tuple[str, ...]
    tls: ssl.SSLContext | None
    nats_seed: str | None = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of one task; `ceremony/configurations.py` says who may use which."""

    prefix: str

    def to(self, teacher: int) -> str:
        """For one teacher."""
        return f"{self.prefix}.to.{teacher}"

    @property
    def all(self) -> str:
        """For all teachers."""
        return f"{self.prefix}.all"

    def answer(self, teacher: int, worker: str) -> str:
        """From a teacher, for the aggregator that asked."""
        return f"{self.prefix}.from.{teacher}.{worker}"

    def answers_for(self, worker: str) -> str:
        """From all teachers, for this aggregator; "presence" is for all aggregators."""
        return f"{self.prefix}.from.*.{worker}"

    @property
    def work(self) -> str:
        """For one aggregator of the queue group: go on with a batch of the store."""
        return f"{self.prefix}.work"

    @property
    def events(self) -> str:
        """For all aggregators: what happens."""
        return f"{self.prefix}.events"

    def sender_of(self, subject: str) -> int | None:
        """Which teacher may publish on this subject."""
        parts = subject.removeprefix(f"{self.prefix}.from.").split(".")
        is_answer = subject.startswith(f"{self.prefix}.from.") and len(parts) == 2
        return int(parts[0]) if is_answer and parts[0].isdecimal() else None


class _TlsClient(Client):
    """Speaks TLS whatever the server's first line says.

    That line comes in the clear, and nats-py asks for TLS only if it says so: whoever stands
    between could leave that out and be the broker, without a TLS certificate, to both sides.
    """

    has_asked_for_tls = False

    def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> Any:
        """Change the line before nats-py reads it; what it returns may be a coroutine."""
        info["tls_required"] = True
        self.has_asked_for_tls = True
        return super()._process_info(info, initial_connection)


class Broker:
    """One connection, which is made again whenever it breaks."""

    def __init__(self, access: BrokerAccess) -> None:
        self.times_connected = 0
        self._access = access
        self._client = self._new_client()
        self._drops = LogThrottle()
        self._errors = _errors_since_contact()
        self._is_closing = False

    @property
    def is_connected(self) -> bool:
        """Whether the broker can be reached now."""
        return self._client.is_connected

    async def connect(self) -> None:
        """Connect, however long it takes; every failure is logged with its reason."""
        while not self._client.is_connected:
            try:
                # nats-py hangs in its own clean-up after a TLS certificate that was refused.
                await asyncio.wait_for(self._connect_once(), _CONNECT_SECONDS)
            except (OSError, ssl.SSLError, nats.errors.Error, TimeoutError) as error:
                await self._on_error(error)
                self._client = self._new_client()
                await asyncio.sleep(_RETRY_SECONDS)
        self._errors = _errors_since_contact()

    def _new_client(self) -> Client:
        return Client() if self._access.tls is None else _TlsClient()

    async def _connect_once(self) -> None:
        await self._client.connect(
            servers=list(self._access.servers),
            name=self._access.name,
            tls=self._access.tls,
            nkeys_seed_str=self._access.nats_seed,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            reconnected_cb=self._on_reconnect,
            max_reconnect_attempts=-1,
            connect_timeout=5,
            reconnect_time_wait=_RETRY_SECONDS,
            ping_interval=_PING_SECONDS,
            pending_size=_OUTBOUND_BYTES,
            allow_reconnect=True,
        )
        if isinstance(self._client, _TlsClient) and not self._client.has_asked_for_tls:
            await self._client.close()
            raise RunnerStopped(
                "this version of nats-py connects in another way, and it cannot be told whether "
                "by TLS",
                hint="install the version that dppp was tested with",
            )

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Hand bytes to the broker. Lost if it is out of reach: whoever misses them asks again."""
        try:
            await self._client.publish(subject, data, reply=reply)
        except nats.errors.Error as error:
            log.warning("message lost", extra={"subject": subject, "reason": _words(error)})

    async def subscribe(self, subject: str, handler: Handler, *, queue: str = "") -> None:
        """Call the handler for each message, one at a time."""
        await self._client.subscribe(subject, queue=queue, cb=self._alive(handler))

    async def subscribe_to_one(self, subject: str, handler: Handler) -> None:
        """The same for a subject of one sender; only a limited number of its messages may wait."""
        await self._client.subscribe(
            subject,
            cb=self._alive(handler),
            pending_msgs_limit=_MOST_WAITING,
            pending_bytes_limit=_WAITING_BYTES,
        )

    def _alive(self, handler: Handler) -> Handler:
        """What arrives shows that the line works; on a slow one the broker's pong waits behind it.

        nats-py counts pongs only, and would hang up in the middle of a long message.
        """

        async def handle(message: Msg) -> None:
            self._client._pings_outstanding = 0
            await handler(message)

        return handle

    async def flush(self) -> None:
        """Wait until the broker has what was published; not if it is out of reach."""
        try:
            await self._client.flush(timeout=5)
        except nats.errors.Error as error:
            log.warning("broker is slow", extra={"reason": _words(error)})

    async def close(self) -> None:
        """Hang up, after what was published has gone out."""
        self._is_closing = True
        # One that breaks while it is closed is cancelled inside nats-py, and is gone as well.
        with suppress(TimeoutError, asyncio.CancelledError, OSError, nats.errors.Error):
            if self._client.is_connected:
                await self.flush()
            await asyncio.wait_for(self._client.close(), _CONNECT_SECONDS)

    async def _on_error(self, error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            times = self._drops.times(error.subject)
            if times:
                extra = {"subject": error.subject, "reason": "too many waiting", "times": times}
                log.warning("message dropped", extra=extra)
            return
        reason = _words(error)
        if times := self._errors.times(reason):
            log.warning("broker error", extra={"reason": reason, "times": times})

    async def _on_disconnect(self) -> None:
        if not self._is_closing:
            log.warning("broker out of reach", extra={"servers": self._access.servers})

    async def _on_reconnect(self) -> None:
        self.times_connected += 1
        self._errors = _errors_since_contact()
        log.info("broker reached again", extra={"servers": self._access.servers})


async def reach_broker(access: BrokerAccess) -> str | None:
    """Connect once and hang up; None, or why it did not work. For `dppp doctor`."""
    client = Client() if access.tls is None else _TlsClient()
    said: list[Exception] = []

    async def note(error: Exception) -> None:
        said.append(error)

    connecting = client.connect(
        servers=list(access.servers),
        name=access.name,
        tls=access.tls,
        nkeys_seed_str=access.nats_seed,
        error_cb=note,
        connect_timeout=5,
        allow_reconnect=False,
        max_reconnect_attempts=1,
    )
    try:
        # nats-py hangs in its own clean-up after a TLS certificate that was refused.
        await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        await asyncio.wait_for(client.flush(timeout=5), _CONNECT_SECONDS)
    except (OSError, ssl.SSLError, nats.errors.Error, TimeoutError) as error:
        return _words(said[-1] if said else error)
    finally:
        with suppress(TimeoutError, asyncio.CancelledError, OSError, nats.errors.Error):
            await asyncio.wait_for(client.close(), 2)
    return None


def _errors_since_contact() -> LogThrottle:
    """It is tried every two seconds: the same reason is said once, and again each minute."""
    return LogThrottle(most=1, window_seconds=_SAY_AGAIN_SECONDS)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no connection within {_CONNECT_SECONDS} s"
    return str(error) or type(error).__name__
