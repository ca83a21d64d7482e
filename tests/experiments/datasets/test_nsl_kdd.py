"""Connections: parsed from text that the test makes, and from the real files where they are."""

import numpy as np
import pytest
from tests.experiments.real_data import need_data

from dppp.errors import InputError
from dppp.experiments.datasets.mnist import MNIST_FILES, load_mnist
from dppp.experiments.datasets.nsl_kdd import (
    OFFICIAL_TEST,
    TWENTY_PERCENT,
    load_nsl_kdd,
    parse_connections,
)


def line(service, attack, number="7"):
    return ",".join([number, "tcp", service, "SF", *["0"] * 36, "0.5", attack, "20"])


def test_words_numbers_and_labels_are_told_apart():
    content = "\n".join([line("http", "normal"), line("ftp", "neptune"), ""]).encode()
    found = parse_connections(content, "some.txt")
    assert found.words.tolist() == [["tcp", "http", "SF"], ["tcp", "ftp", "SF"]]
    assert found.numbers.shape == (2, 38)
    assert found.numbers[0, 0] == 7
    assert found.numbers[1, -1] == 0.5
    assert found.labels.tolist() == [0, 1]
    assert found.rows(np.array([1])).words.tolist() == [["tcp", "ftp", "SF"]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"1,2,3\n", "line 1 of some.txt has 3 columns, expected 43"),
        (line("http", "normal", number="many").encode(), "words where numbers"),
        (b"\xff\xfe", "not plain text"),
    ],
)
def test_what_is_not_connections_is_refused(content, complaint):
    with pytest.raises(InputError, match=complaint):
        parse_connections(content, "some.txt")


def test_the_real_files_have_as_many_records_as_their_authors_say():
    need_data(TWENTY_PERCENT, OFFICIAL_TEST)
    data = load_nsl_kdd()
    assert len(data.train.labels) + len(data.test.labels) == 25_192
    assert len(data.official_test.labels) == 22_544
    # 9,711 of the official test are normal (NSL-KDD's own statistics).
    assert int(data.official_test.labels.sum()) == 22_544 - 9_711


def test_the_real_digits_have_as_many_records_as_their_authors_say():
    need_data(*MNIST_FILES)
    mnist = load_mnist()
    assert mnist.train_images.shape == (60_000, 28, 28)
    assert mnist.test_images.shape == (10_000, 28, 28)
    assert np.bincount(mnist.test_labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
