"""Says in time that a process' TLS certificate will end: a metric, and a line in the log per day.

Used by teacher and aggregator. What counts is the TLS certificate that the process loaded: one that
was renewed since is used from the next start on.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from cryptography import x509
from prometheus_client import CollectorRegistry, Gauge

WARNING_SECONDS = 30 * 86_400
_EVERY_SECONDS = 86_400


class TlsCertificateWatch:
    """Watches one TLS certificate for a teacher or an aggregator."""

    def __init__(
        self,
        tls_certificate: x509.Certificate,
        log: logging.Logger,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._end = tls_certificate.not_valid_after_utc
        self._log = log
        self._clock = clock

    @property
    def seconds_left(self) -> float:
        """Until the TLS certificate ends; negative after it."""
        return self._end.timestamp() - self._clock()

    def show_in(self, registry: CollectorRegistry) -> None:
        """As a metric."""
        gauge = Gauge(
            "dppp_certificate_seconds",
            "Until the TLS certificate for the broker ends",
            registry=registry,
        )
        gauge.set_function(lambda: self.seconds_left)

    def tell(self) -> None:
        """Log what an operator should do something about; nothing while there is time."""
        left = self.seconds_left
        extra = {"ends": self._end.isoformat(), "days": int(left // 86_400)}
        if left < 0:
            self._log.error("the TLS certificate has ended", extra=extra)
        elif left < WARNING_SECONDS:
            self._log.warning("the TLS certificate ends soon", extra=extra)

    async def run(self) -> None:
        """Tell at once, every day, and when the end comes, until cancelled."""
        while True:
            self.tell()
            left = self.seconds_left
            await asyncio.sleep(min(left + 1, _EVERY_SECONDS) if left > 0 else _EVERY_SECONDS)
