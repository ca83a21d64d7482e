"""`dppp teacher run`: a teacher's process."""

from pathlib import Path
from typing import Annotated

import typer

from dppp.cli.extras import need_service


def run(
    *,
    config: Annotated[Path, typer.Option(help="The teacher's configuration, teacher.toml.")],
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle-which-can-run-any-code",
            help="Load a pickled model. Whoever made the file can run any code here.",
        ),
    ] = False,
) -> None:
    """Answer the aggregator until stopped (SIGTERM or Ctrl-C)."""
    need_service()
    from dppp.service.config import TeacherConfig, read_config  # noqa: PLC0415
    from dppp.service.logs import log_to_stderr  # noqa: PLC0415
    from dppp.service.teacher_process import run_teacher  # noqa: PLC0415

    settings = read_config(config, TeacherConfig)
    log_to_stderr(settings.log_level)
    run_teacher(settings, allow_pickle=allow_pickle)
