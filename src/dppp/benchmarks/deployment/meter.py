"""What a running deployment uses: processor time and memory by role, and bytes at the broker."""

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np

from dppp.benchmarks.deployment.process_use import cpu_seconds, resident_megabytes
from dppp.benchmarks.deployment.querier import Asked
from dppp.service.local.federation import LOCALHOST, LocalFederation
from dppp.service.local.processes import free_ports, read_processes


class Meter:
    """Made before the processes are started, since the broker is told to count for it."""

    def __init__(self, local: LocalFederation) -> None:
        (port,) = free_ports(1)
        with local.broker_config.open("a", encoding="utf-8") as file:
            file.write(f'\nhttp: "{LOCALHOST}:{port}"\n')
        self._local = local
        self._broker = f"http://{LOCALHOST}:{port}/varz"

    def measure(self, ask: Callable[[], Asked]) -> dict[str, float]:
        """The figures of some batches, with what all processes spent on them per label."""
        cpu, through = self._cpu_ms(), self._broker_bytes()
        asked = ask()
        spent = {role: (ms - cpu[role]) / asked.labels for role, ms in self._cpu_ms().items()}
        received, sent = self._broker_bytes() - through
        return asked.figures() | {
            "cpu_ms_per_label": sum(spent.values()),
            "aggregator_cpu_ms_per_label": spent["aggregator"],
            "broker_cpu_ms_per_label": spent["broker"],
            "teachers_cpu_ms_per_label": spent["teacher"],
            "broker_bytes_received": float(received),
            "broker_bytes_sent": float(sent),
        }

    def memory(self) -> dict[str, float]:
        """Resident megabytes; of teachers for each process, which may hold several."""
        resident = {
            each.name: resident_megabytes(each.pid) for each in read_processes(self._local.folder)
        }
        found = {name: resident.pop(name) for name in ("broker", "aggregator")}
        teachers = list(resident.values())
        return found | {
            "teachers_least": min(teachers),
            "teachers_mean": float(np.mean(teachers)),
            "teachers_most": max(teachers),
        }

    def _cpu_ms(self) -> dict[str, float]:
        """Of the processes of each role; there may be several aggregators too."""
        processes = read_processes(self._local.folder)
        of_role = {
            role: [each.pid for each in processes if each.name.startswith(role)]
            for role in ("broker", "aggregator", "teacher")
        }
        return {role: 1000 * cpu_seconds(pids) for role, pids in of_role.items()}

    def _broker_bytes(self) -> Any:
        """Bytes of messages that came in, and that went out to each who hears them."""
        said = httpx.get(self._broker, timeout=30).json()
        return np.array([said["in_bytes"], said["out_bytes"]])
