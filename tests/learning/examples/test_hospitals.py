import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.learning.examples.hospitals import (
    Hospitals,
    compare_in_this_run,
    compare_on_average,
    expected_accuracy,
    open_hospitals,
)
from dppp.privacy.noise import Skellam


@pytest.fixture(scope="module")
def hospitals() -> Hospitals:
    return open_hospitals()


def test_every_record_is_held_out_or_has_one_owner(hospitals: Hospitals) -> None:
    data = load_breast_cancer()
    assert sum(hospitals.record_counts) + len(hospitals.patients) == len(data.data)
    assert max(hospitals.record_counts) - min(hospitals.record_counts) <= 1
    diagnosis = {row.tobytes(): target for row, target in zip(data.data, data.target, strict=True)}
    held_out = [row.tobytes() for row in hospitals.patients]
    assert len(set(held_out)) == len(held_out)
    assert [diagnosis[row] for row in held_out] == hospitals.diagnoses.tolist()


def test_a_hospital_learns_from_its_own_records_alone(hospitals: Hospitals) -> None:
    data = load_breast_cancer()
    kept = np.random.RandomState(0).permutation(len(data.data))[len(hospitals.patients) :]
    own = kept[4::20]
    scaler = StandardScaler().fit(data.data[own])
    model = SVC().fit(scaler.transform(data.data[own]), data.target[own])
    expected = model.predict(scaler.transform(hospitals.patients))
    votes = hospitals.votes(len(hospitals.patients))
    assert votes[:, 4].tolist() == expected.tolist()
    assert votes.shape == (len(hospitals.patients), 20)
    assert len(np.unique(votes, axis=1).T) > 1


def test_another_seed_deals_and_holds_out_otherwise(hospitals: Hospitals) -> None:
    other = open_hospitals(seed=1)
    assert not np.array_equal(other.patients, hospitals.patients)
    again = open_hospitals()
    assert np.array_equal(again.votes(114), hospitals.votes(114))


def test_more_hospitals_than_records_are_refused() -> None:
    with pytest.raises(InputError, match="569 records are too few for 456 teachers"):
        open_hospitals(456)


def test_a_hospital_that_saw_one_class_always_says_it() -> None:
    tiny = open_hospitals(200, held_out=169)  # two records each
    votes = tiny.votes(169)
    always = [column[0] for column in votes.T if len(set(column)) == 1]
    assert set(always) == {0, 1}


def test_accuracies_are_parts_of_the_same_patients(hospitals: Hospitals) -> None:
    truth = hospitals.diagnoses[:8].tolist()
    labels = [1 - truth[0], None, *truth[2:]]
    found = compare_in_this_run(hospitals, labels)
    assert found.patients == 8
    assert found.private == 6 / 8
    votes = hospitals.votes(8)
    singles = [np.mean(column == truth) for column in votes.T]
    assert found.single_mean == pytest.approx(np.mean(singles))
    assert (found.single_min, found.single_max) == (min(singles), max(singles))


def test_a_tied_vote_counts_as_half_right(hospitals: Hospitals) -> None:
    agreeing = (hospitals.votes(114) == hospitals.diagnoses[:, None]).sum(axis=1)
    assert 10 in agreeing, "this seed has ties"
    found = compare_on_average(hospitals, Skellam(share_variance=1.0, shares=14))
    right = np.mean(agreeing > 10) + np.mean(agreeing == 10) / 2
    assert found.plurality == pytest.approx(right)


def test_the_average_over_the_noise_is_that_of_many_draws(hospitals: Hospitals) -> None:
    noise = Skellam(share_variance=2.0, shares=14)
    random, draws = np.random.default_rng(5), 2000
    ones = hospitals.votes(114).sum(axis=1)
    lead = np.where(hospitals.diagnoses == 1, 2 * ones - 20, 20 - 2 * ones)
    # Seeded, so it never fails by chance; five standard errors would be one in two million.
    # A Skellam variable of variance v is a difference of two Poisson variables of mean v/2.
    total = random.poisson(20.0, (2, 2, draws, 114))
    difference = lead + (total[0, 0] - total[0, 1]) - (total[1, 0] - total[1, 1])
    right = (difference > 0) + 0.5 * (difference == 0)
    error = right.mean(axis=1).std() / math.sqrt(draws)
    assert abs(right.mean() - expected_accuracy(hospitals, noise)) < 5 * error


def test_more_noise_is_less_accurate_and_none_is_the_vote_in_the_clear(
    hospitals: Hospitals,
) -> None:
    found = [
        expected_accuracy(hospitals, Skellam(share_variance=variance, shares=14))
        for variance in (1e-6, 1.0, 10.0, 100.0)
    ]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4
    clear = compare_in_this_run(hospitals, hospitals.diagnoses.tolist())
    assert clear.private == 1
    assert found[0] == pytest.approx(clear.plurality, abs=1e-3)
