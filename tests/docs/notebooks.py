"""Runs a tutorial from top to bottom in a folder of its own.

`python -m tests.docs.notebooks` runs all of them and stores what they print, after a change. Tests
run each in a process of its own, so that nothing of Jupyter stays in theirs.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from dppp.service.local.processes import stop_all

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = ("data-scientist", "operator", "researcher")
_CELL_SECONDS = 300


def read_notebook(name: str) -> Any:
    """As it is stored."""
    return nbformat.read(TUTORIALS / f"{name}.ipynb", as_version=4)


def run_apart(name: str, out: Path) -> Any:
    """The notebook after a run in another process."""
    command = [sys.executable, "-m", "tests.docs.notebooks", name, str(out)]
    root = TUTORIALS.parents[1]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, cwd=root, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return nbformat.read(out / f"{name}.ipynb", as_version=4)


def run_notebook(name: str) -> Any:
    """The notebook after a run; raises what a cell raises, and leaves no process behind."""
    notebook = read_notebook(name)
    with tempfile.TemporaryDirectory(prefix="nb") as place:  # short: sockets have short paths
        folder = Path(place) / "run"
        folder.mkdir()
        # Sockets in the folder, not ports: another process could take a free port first.
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc")
        kernel.connection_file = str(Path(place) / "kernel.json")
        client = NotebookClient(
            notebook,
            km=kernel,
            timeout=_CELL_SECONDS,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        with _settings_in(Path(place)):
            try:
                client.execute(env=dict(os.environ))
            finally:
                stop_all(folder / "federation")
    return notebook


@contextmanager
def _settings_in(place: Path) -> Iterator[None]:
    """Jupyter, IPython and the experiments write nothing elsewhere."""
    names = (
        "JUPYTER_RUNTIME_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_CONFIG_DIR",
        "IPYTHONDIR",
        "MPLCONFIGDIR",
        "DPPP_CACHE",
    )
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(place / name.lower()) for name in names})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def printed(cell: Any) -> str:
    """What a code cell shows, as text."""
    texts = []
    for output in cell.outputs:
        data = output.get("data", {})
        texts.append(output.get("text", "") or data.get("text/plain", ""))
    return "".join(texts)


def join_streams(notebook: Any) -> None:
    """What a cell prints comes in pieces, cut anywhere; a reader is shown each as a block."""
    for cell in notebook.cells:
        joined: list[Any] = []
        for output in cell.get("outputs", ()):
            last = joined[-1] if joined else None
            if last and output.get("name") and output.get("name") == last.get("name"):
                last["text"] += output["text"]
            else:
                joined.append(output)
        if "outputs" in cell:
            cell["outputs"] = joined


def main(names: Sequence[str], out: Path) -> None:
    """Run, and store what was printed."""
    for name in names:
        notebook = run_notebook(name)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        join_streams(notebook)
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, out / f"{name}.ipynb")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1:2], Path(sys.argv[2]))
    else:
        main(sys.argv[1:] or NAMES, TUTORIALS)
