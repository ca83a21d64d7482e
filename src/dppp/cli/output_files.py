"""Where commands write their results: folders, files and figures.

A folder for results is made, but never the folders above it: they would hide a slip of the pen, or
stand in for a disk that is not mounted.
"""

from pathlib import Path

from dppp.errors import InputError

_FIGURES = (".png", ".svg", ".pdf")


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file, in a folder that is made if missing, and return where it is."""
    make_folder(path.parent)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", hint="choose another place"
        ) from error
    return path


def make_folder(path: Path) -> None:
    """Make a folder unless it is there; the one above it must be."""
    require_folder_above(path)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {path}: {error.strerror}", hint="choose another place"
        ) from error


def require_folder_above(path: Path) -> None:
    """Refuse a place in a folder that is not there."""
    folder = path.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(f"the folder {folder} {what}", hint="make it first, or correct the path")


def require_place(path: Path | None) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if path is None:
        return
    require_folder_above(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="name a file in it")


def require_figure_place(path: Path | None) -> None:
    """The same for a figure, whose kind is in its name."""
    require_place(path)
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise InputError(
            f"cannot draw to {path}: its name does not say what kind of figure it is",
            hint="name a .png, .svg or .pdf file",
        )


def save_figure(figure: object, path: Path) -> None:
    """Write a figure, or say why that is impossible."""
    require_figure_place(path)
    try:
        figure.savefig(path, dpi=150)  # type: ignore[attr-defined]
    except (OSError, ValueError) as error:
        raise InputError(f"cannot draw to {path}: {error}", hint="choose another place") from error
