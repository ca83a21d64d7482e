"""The container image: built and run where an engine is, else its steps are run in a folder.

In a folder nothing is downloaded, the user is not made, and what dppp depends on is lent by its
path. The run says so.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.left_out import need_module

import dppp

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
STEP = re.compile(r"^([A-Z]+) (.+)$", flags=re.MULTILINE)
STEPS = STEP.findall((DEPLOY / "Containerfile").read_text().replace("\\\n", " "))


def find_engine() -> str | None:
    """A program that can build here, not only a client without a server."""
    for name in ("podman", "docker"):
        program = shutil.which(name)
        if (
            program is not None
            and not subprocess.run(  # noqa: S603 - asks for its state only
                [program, "info"], capture_output=True, check=False, timeout=30
            ).returncode
        ):
            return program
    return None


def run(command: list[str], *, folder: Path, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - the image's own steps
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_image_says_its_version(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    engine = find_engine()
    if engine is not None:
        run(
            [engine, "build", "-f", str(DEPLOY / "Containerfile"), "-t", "dppp-test", "."],
            folder=ROOT,
        )
        said = run([engine, "run", "--rm", "dppp-test", "--version"], folder=tmp_path)
    else:
        need_module("hatchling", extra="dev")
        record_property(
            "say",
            "NOT BUILT: the container image (no engine here); its steps were run in a folder, but "
            "for useradd and for downloading what dppp depends on",
        )
        said = run_steps(tmp_path)
    assert said.startswith(f"dppp {dppp.__version__}")


def run_steps(scratch: Path) -> str:
    """COPY and RUN, with /build in the scratch folder and a new environment as the system's."""
    environment = scratch / "env"
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], folder=scratch)
    programs = environment / "bin"
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    pip = shlex.join([sys.executable, "-m", "pip", "--python", str(programs / "python")])
    said = ""
    for name, step in STEPS:
        words = step.replace("/build", str(scratch / "build"))
        if name == "COPY":
            *sources, target = words.split()
            for source in sources:
                copy(ROOT / source, Path(target))
        elif name == "RUN" and not words.startswith("useradd"):
            offline = f"{pip} install --no-deps --no-index --no-build-isolation"
            command = words.replace("pip install", offline)
            path = f"{programs}{os.pathsep}{os.environ['PATH']}"
            said = run(["/bin/sh", "-c", command], folder=scratch, PATH=path)
    assert not (scratch / "build").exists()
    return said


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(exist_ok=True)
        shutil.copy(source, target)


def test_the_image_runs_as_nobody_and_says_what_it_is() -> None:
    names = [name for name, _ in STEPS]
    assert names[0] == "FROM"
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    assert ("USER", "dppp") in STEPS
    assert ("ENTRYPOINT", '["dppp"]') in STEPS
    (user,) = [words for name, words in STEPS if words.startswith("useradd")]
    assert "--uid 10001" in user


@pytest.mark.parametrize("service", ["teacher", "aggregator"])
def test_compose_builds_this_image_and_gives_it_no_rights(service: str) -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"][service]
    assert (DEPLOY / found["build"]["context"]).resolve() == ROOT
    assert (ROOT / found["build"]["dockerfile"]).is_file()
    assert (found["read_only"], found["cap_drop"], found["user"]) == (True, ["ALL"], "10001:10001")
