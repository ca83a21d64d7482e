"""Records that are dealt among teachers of one machine, and what is written of them."""

from pathlib import Path

import numpy as np
import pytest

from dppp.errors import InputError
from dppp.learning.csv_records import Records
from dppp.learning.examples.local_models import write_rows

RECORDS = Records(
    features=("a", "b"),
    rows=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    labels=np.array(["x", "y", "x"]),
)


def test_rows_to_ask_about_are_written_without_their_labels(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", RECORDS, np.array([2, 0]))
    assert (tmp_path / "rows.csv").read_text().split() == ["a,b", "5.0,6.0", "1.0,2.0"]


def test_rows_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*rows\.csv: No such file"):
        write_rows(tmp_path / "none" / "rows.csv", RECORDS, np.array([0]))
