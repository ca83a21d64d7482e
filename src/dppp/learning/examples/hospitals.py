"""Breast Cancer dealt to hospitals: each trains a model on its own records alone.

Used by the demo; the data ships with scikit-learn. A seed fixes who holds which record and which
patients are held out. Noise has no seed anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.utils import check_random_state

from dppp.learning.examples.local_models import hold_out_and_deal, table_model
from dppp.learning.shards import train_model
from dppp.learning.verdict import HeldOut, Verdict, judge
from dppp.learning.votes import count_votes
from dppp.learning.win_probability import Race, accuracy_of, accuracy_without_noise
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hospitals:
    """Who learned what, and the patients that nobody has seen."""

    class_names: tuple[str, ...]
    features: tuple[str, ...]
    record_counts: tuple[int, ...]
    models: tuple[Any, ...]
    centralised: Any
    """One model of everybody's records: what no law would allow."""
    patients: NDArray[np.float64]
    diagnoses: NDArray[np.int64]
    majority: int
    """The class that most of the dealt records are of."""

    def votes(self, asked: int) -> NDArray[np.int64]:
        """What the models say of the first patients, one row a patient, one column a hospital."""
        return np.stack([model.predict(self.patients[:asked]) for model in self.models], axis=1)


def open_hospitals(count: int = 20, *, held_out: int = 114, seed: int = 0) -> Hospitals:
    """Hold patients out, deal the other records at random, and train."""
    data = load_breast_cancer()
    order = check_random_state(seed).permutation(len(data.data))
    patients, dealt = hold_out_and_deal(order, held_out, count)
    everything = order[held_out:]
    return Hospitals(
        class_names=tuple(map(str, data.target_names)),
        features=tuple(map(str, data.feature_names)),
        record_counts=tuple(map(len, dealt)),
        models=tuple(_train(data.data[records], data.target[records], seed) for records in dealt),
        centralised=_train(data.data[everything], data.target[everything], seed),
        patients=data.data[patients],
        diagnoses=data.target[patients],
        majority=int(np.bincount(data.target[everything]).argmax()),
    )


def _train(rows: NDArray[np.float64], diagnoses: NDArray[np.int64], seed: int) -> Any:
    return train_model(table_model(), rows, diagnoses, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies:
    """The part of the same patients that each way of answering gets right."""

    patients: int
    private: float
    plurality: float
    centralised: float
    single_mean: float
    single_min: float
    single_max: float

    def to_json(self) -> dict[str, float]:
        """By these names."""
        return {name: getattr(self, name) for name in self.__slots__}


def compare_in_this_run(hospitals: Hospitals, labels: Sequence[int | None]) -> Accuracies:
    """Private labels of the first patients beside what less privacy, or company, would give."""
    truth = hospitals.diagnoses[: len(labels)]
    right = sum(label == diagnosis for label, diagnosis in zip(labels, truth, strict=True))
    return _compare(hospitals, len(labels), private=right / len(labels))


def compare_on_average(hospitals: Hospitals, noise: Noise) -> Accuracies:
    """The same for all patients held out, over every outcome of every hospital's noise."""
    return _compare(hospitals, len(hospitals.patients), private=expected_accuracy(hospitals, noise))


def _compare(hospitals: Hospitals, patients: int, *, private: float) -> Accuracies:
    rows, truth = hospitals.patients[:patients], hospitals.diagnoses[:patients]
    singles = (hospitals.votes(patients) == truth[:, None]).mean(axis=0)
    return Accuracies(
        patients=patients,
        private=private,
        plurality=accuracy_without_noise(_races(hospitals, patients)),
        centralised=float(np.mean(hospitals.centralised.predict(rows) == truth)),
        single_mean=float(singles.mean()),
        single_min=float(singles.min()),
        single_max=float(singles.max()),
    )


def expected_accuracy(hospitals: Hospitals, noise: Noise) -> float:
    """How often a label of a patient held out is right if every hospital adds its share of noise.

    Computed from votes in the clear: only where, as here, the records are not secret.
    """
    tally_noise = noise.of_teachers(len(hospitals.models))
    return accuracy_of(_races(hospitals, len(hospitals.patients)), tally_noise)


def judge_hospitals(hospitals: Hospitals, certificate: Certificate) -> Verdict:
    """Whether it is worth it, and to whom, from all patients held out."""
    votes = hospitals.votes(len(hospitals.patients)).T
    classes = np.arange(len(hospitals.class_names))
    held_out = HeldOut(
        votes=(votes[:, :, None] == classes).astype(np.int64),
        labels=hospitals.diagnoses,
        majority=hospitals.majority,
        alone=(votes == hospitals.diagnoses).astype(np.float64),
    )
    return judge(held_out, certificate)


def _races(hospitals: Hospitals, patients: int) -> tuple[Race, ...]:
    observed = count_votes(
        hospitals.votes(patients),
        hospitals.diagnoses[:patients],
        classes=len(hospitals.class_names),
    )
    return observed.races(len(hospitals.models))
