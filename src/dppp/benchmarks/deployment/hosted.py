"""Many teachers on one machine: several of them in each process, to save memory.

Each has its own keys, model, ledger file and connection to the broker, as in a process of its own;
only the interpreter and its packages are shared, and the processor's time that one would wait for.
Run as `python -m dppp.benchmarks.deployment.hosted TEACHER.TOML …`.
"""

import sys
from pathlib import Path

from dppp.service.local.federation import LocalFederation
from dppp.service.local.processes import commands_of
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.process.logs import log_to_stderr
from dppp.service.teacher.process import run_teachers


def commands_of_hosts(local: LocalFederation, processes: int) -> dict[str, list[str]]:
    """What to start so that all teachers together are in this number of processes."""
    teachers = {config.parent.name for config in local.teacher_configs}
    commands = {name: each for name, each in commands_of(local).items() if name not in teachers}
    for place in range(processes):
        configs = [str(each) for each in local.teacher_configs[place::processes]]
        commands[f"teachers-{place + 1}"] = [sys.executable, "-m", __name__, *configs]
    return commands


def main(paths: list[str]) -> None:
    """Run the teachers of these configurations until stopped."""
    configs = [read_config(Path(each), TeacherConfig) for each in paths]
    log_to_stderr(configs[0].log_level, as_json=False)
    run_teachers(configs)


if __name__ == "__main__":
    main(sys.argv[1:])
