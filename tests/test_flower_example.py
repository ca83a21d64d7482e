"""examples/flower: a batch whose messages go through a real SuperLink and SuperNodes."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.left_out import IS_SOAK

EXAMPLE = Path(__file__).parents[1] / "examples" / "flower"
FLOWER = os.environ.get("DPPP_FLOWER")  # where Flower's commands are, if somebody has them
STANDARD_OR_FLOWER = {*sys.stdlib_module_names, "flwr", "dppp_over_flower"}


@pytest.fixture(scope="module")
def flower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Flower's commands, from an environment that has Flower and nothing of dppp."""
    if FLOWER is not None:
        return Path(FLOWER)
    folder = tmp_path_factory.mktemp("flower") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
    constraints = str(EXAMPLE / "constraints.txt")
    install = ["install", "--quiet", "--disable-pip-version-check", "--constraint", constraints]
    subprocess.run([str(folder / "bin" / "pip"), *install, "flwr"], check=True)  # noqa: S603
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.skipif(
    not IS_SOAK and FLOWER is None,
    reason="installing Flower and running it takes minutes; run it with: make soak",
)
def test_a_batch_through_flowers_own_server_and_nodes_is_released_and_verifies(
    flower: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "federation"
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(EXAMPLE / "run.py"), str(folder), str(flower)],
        capture_output=True,
        text=True,
        check=False,
        timeout=480,
    )
    logs = "".join(each.read_text("utf-8", "replace")[-2_000:] for each in folder.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs
    lines = done.stdout.splitlines()
    assert lines[0] == "5 teachers behind Flower"
    assert [line.split("] ")[1].split()[0] for line in lines[1:5]] == ["well", "ill", "well", "ill"]
    assert lines[5] == "transcript verified; at fault: nobody"
    assert "query.carry" in (folder / "site-1-node.log").read_text("utf-8")


def test_what_flower_carries_to_the_sites_needs_no_part_of_dppp() -> None:
    files = list((EXAMPLE / "app").rglob("*.py"))
    assert len(files) >= 4
    for path in files:
        for module in _imported(path):
            assert module.split(".")[0] in STANDARD_OR_FLOWER, f"{path.name} imports {module}"


def _imported(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            found.append(node.module)
    return found
