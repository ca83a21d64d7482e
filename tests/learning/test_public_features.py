"""Features that are learned from public records without labels."""

import numpy as np
import pytest
from scipy import ndimage
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from dppp.errors import InputError
from dppp.learning.picture_patches import PicturePatches
from dppp.learning.public_features import PublicFeatures
from dppp.learning.student import StudentClassifier


def pictures(count, seed):
    """Stripes of two directions at any place of 18 × 18 pixels, smooth, in noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(2, size=count)
    grids = random.random((count, 18, 18))
    for grid, label in zip(grids, labels, strict=True):
        start = random.integers(4)
        (grid[start::4] if label else grid[:, start::4])[...] += 3
    return ndimage.gaussian_filter(grids, (0, 1, 1)).reshape(count, -1), labels


def test_columns_that_are_like_their_neighbours_in_a_square_are_a_picture():
    smooth = ndimage.gaussian_filter(np.random.default_rng(0).random((20, 16, 16)), (0, 2, 2))
    rows = smooth.reshape(20, -1)
    assert PublicFeatures(random_state=0).fit(rows).kind_ == "picture"
    shuffled = rows[:, np.random.default_rng(1).permutation(256)]
    assert PublicFeatures(random_state=0).fit(shuffled).kind_ == "one unit"


def test_patches_tell_apart_what_pixels_confuse():
    rows, labels = pictures(300, seed=1)
    patches = PicturePatches(random_state=0, words=20, samples=2000).fit(rows[:100]).transform(rows)
    by_pixel, by_patch = (
        KNeighborsClassifier(3).fit(each[:10], labels[:10]).score(each[100:], labels[100:])
        for each in (rows, patches)
    )
    assert by_patch > 0.95
    assert by_patch > by_pixel


def test_the_same_seed_learns_the_same_patches():
    rows, _ = pictures(30, seed=2)
    first, second = (
        PicturePatches(random_state=1, words=10, samples=500).fit(rows).transform(rows)
        for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_column_in_bytes_does_not_drown_one_in_years():
    random = np.random.default_rng(2)
    years, octets = random.random(200) * 80, random.random(200) * 1e9
    fitted = PublicFeatures().fit(np.column_stack([years, octets]))
    assert fitted.kind_ == "ranks"
    assert np.ptp(fitted.transform([[0.0, 0.0], [80.0, 1e9]]), axis=0) == pytest.approx([1, 1])


def test_columns_of_one_unit_stay_as_they_are():
    table = np.random.default_rng(3).random((50, 4)) * [1, 2, 3, 4]
    fitted = PublicFeatures().fit(table)
    assert fitted.kind_ == "one unit"
    assert np.array_equal(fitted.transform(table), table)


def test_a_table_of_one_constant_column_is_no_reason_to_stop():
    assert PublicFeatures().fit(np.ones((5, 1))).transform(np.ones((2, 1))).shape == (2, 1)


def ask(records):
    return ["high" if record[0] > 40 else "low" for record in records]


def mixed_table():
    """What counts is in years; what does not is in bytes."""
    random = np.random.default_rng(5)
    years = np.concatenate([random.normal(20, 4, 150), random.normal(60, 4, 150)])
    return np.column_stack([years, random.random(300) * 1e9])


def test_a_student_of_a_table_of_several_units_is_right_by_default():
    table = mixed_table()
    truth = np.array(ask(table))
    learned, given = (
        StudentClassifier(
            ask, labels=12, classes=["high", "low"], features=each, random_state=0
        ).fit(table)
        for each in ("learned", "given")
    )
    assert learned.score(table, truth) > 0.9
    assert given.score(table, truth) < 0.7


def test_any_transformer_may_say_how_records_are_compared():
    transformer = PCA(1)
    student = StudentClassifier(
        ask, labels=6, classes=["high", "low"], features=transformer, random_state=0
    ).fit(mixed_table())
    assert student.features_ is not None
    assert student.features_.n_components_ == 1
    assert not hasattr(transformer, "components_")


@pytest.mark.parametrize("features", ["made up", 3])
def test_unknown_features_are_refused_before_anything_is_asked(features):
    asked: list[object] = []
    student = StudentClassifier(asked.append, classes=["a", "b"], labels=2, features=features)
    with pytest.raises(InputError, match="features"):
        student.fit(mixed_table())
    assert not asked
