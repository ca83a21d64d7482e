"""Where commands write their results: folders, files and figures."""

from pathlib import Path

from dppp.errors import InputError


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file, its folder too, and return where it is."""
    make_folder(path.parent)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path


def make_folder(path: Path) -> None:
    """Make a folder unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}") from error


def save_figure(figure: object, path: Path) -> None:
    """Write a figure, or say why that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)  # type: ignore[attr-defined]
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot draw to {path}: {error}",
            hint="name a .png, .svg or .pdf file",
        ) from error
