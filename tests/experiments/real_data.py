"""The real files: used where DPPP_DATA names the folder that holds them, else said to be absent."""

import os
from pathlib import Path

import pytest

from dppp.experiments.datasets.files import DATA_VARIABLE, DataFile


def need_data(*files: DataFile) -> None:
    """Go on if the files are there; nothing is downloaded by a test."""
    folder = os.environ.get(DATA_VARIABLE)
    for file in files:
        if folder is None or file.found_in(Path(folder)) is None:
            pytest.skip(
                f"NOT TESTED on the real file: set {DATA_VARIABLE} to the folder that holds "
                f"{file.folder}/{file.name}; the made-up files above were"
            )
