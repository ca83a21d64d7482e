"""A wheel and an sdist, as somebody gets them: built, installed into an empty environment, run.

What dppp depends on is lent to that environment by its path, so that nothing is downloaded.
"""

import json
import os
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.left_out import need_module

import dppp
from dppp.protocol.wire import VERSION

ROOT = Path(__file__).parents[1]


def run(command: Sequence[str | Path], *, folder: Path) -> str:
    """Outside of the repository, and without what could lead back into it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = subprocess.run(  # noqa: S603 - our own command
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and a wheel that was built from what is in it."""
    need_module("hatchling", extra="dev")
    out = tmp_path_factory.mktemp("packages")
    hatch: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-d", out]
    run([*hatch, "-t", "sdist"], folder=ROOT)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (unpacked,) = (out / "unpacked").iterdir()
    run([*hatch, "-t", "wheel"], folder=unpacked)
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment with the wheel in it."""
    need_module("pip", extra="dev")
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], folder=folder)
    programs = folder / "env" / "bin"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", programs / "python"]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", built[1]], folder=folder)
    ask: list[str | Path] = [
        programs / "python",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
    ]
    packages = Path(run(ask, folder=folder).strip())
    lent = Path(np.__file__).parents[1]
    (packages / "lent.pth").write_text(f"{lent}\n")
    return programs


def test_the_wheel_runs_where_no_source_is(installed: Path, tmp_path: Path) -> None:
    where = "import dppp; print(dppp.__file__, dppp.__version__)"
    file, version = run([installed / "python", "-c", where], folder=tmp_path).split()
    assert Path(file).is_relative_to(installed.parent)
    assert version == dppp.__version__
    said = run([installed / "dppp", "--version"], folder=tmp_path)
    assert said == f"dppp {dppp.__version__} (wire format {VERSION})\n"
    asked = shlex.split("calibrate --noise skellam --epsilon 1 --delta 1e-5 --teachers 20 --json")
    found = json.loads(run([installed / "dppp", *asked], folder=tmp_path))
    assert found["certified"] is True
    join: list[str | Path] = ["join", tmp_path / "home", "--name", "hospital", "--json"]
    assert json.loads(run([installed / "dppp", *join], folder=tmp_path))["name"] == "hospital"


def test_the_wheel_has_all_that_the_source_has_and_nothing_beside(
    built: tuple[Path, Path],
) -> None:
    source = ROOT / "src"
    files = {
        str(path.relative_to(source))
        for path in (source / "dppp").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(built[1]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == files
    assert {"dppp/py.typed", "dppp/service/gateway/page/index.html"} <= packed


def test_the_sdist_has_what_it_takes_to_build_and_test(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "constraints.txt", "LICENSE", "tests/vectors/masks.json"):
        assert name in names
    assert {"docs/deploy/Containerfile", "examples/quickstart.py"} <= names


def test_one_version_is_said_everywhere(built: tuple[Path, Path]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == dppp.__version__
    assert f"dppp-{dppp.__version__}" in built[0].name
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## {dppp.__version__} " in changes
