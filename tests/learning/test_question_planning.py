import numpy as np
import pytest

from dppp.errors import InputError
from dppp.learning.choosing_votes import STANDARD_ERROR
from dppp.learning.question_planning import MARGINS, chance_released_rightly, plan_question
from dppp.privacy.calibration import calibrate
from dppp.privacy.sampling import sampling_table
from dppp.protocol.question import CHOICE, Question
from dppp.randomness import expand_key

NUMBER = Question.of_number(low=10, high=50, levels=20)
LABELS = Question.of_labels(most_labels=2, share=0.4)


def test_the_rule_for_votes_keeps_the_standard_error_it_promises() -> None:
    for epsilon in (1.0, 8.0):
        first = plan_question(NUMBER, teachers=12, epsilons=(epsilon,), queries=5)
        ((_, wanted),) = first.votes_wanted
        tried = (wanted,) if wanted == 1 else (wanted - 1, wanted)
        found = plan_question(NUMBER, teachers=12, votes=tried, epsilons=(epsilon,), queries=5)
        parts = [each.part_of_range or 0.0 for each in found.outlooks]
        assert parts[-1] <= STANDARD_ERROR
        assert all(part > STANDARD_ERROR for part in parts[:-1])
        assert found.outlooks[0].standard_error == pytest.approx(40 * parts[0])


def test_more_steps_do_not_change_what_noise_adds() -> None:
    wide, fine = (
        plan_question(
            Question.of_number(low=0, high=1, levels=levels),
            teachers=10,
            votes=(1,),
            epsilons=(1.0,),
            queries=10,
        )
        for levels in (10, 30)
    )
    assert wide.outlooks[0].part_of_range == pytest.approx(fine.outlooks[0].part_of_range, rel=0.02)


def test_the_chance_of_a_label_is_that_of_the_noise_drawn() -> None:
    certificate = calibrate(
        "skellam", epsilon=4, delta=1e-5, teachers=10, queries=10, classes=5, max_labels=2
    )
    table, draws, votes = sampling_table(certificate.noise), 20_000, 60
    drawn = table.draw(10 * draws, lambda count: expand_key(bytes(32), count))
    noise = drawn.reshape(draws, 10).sum(axis=1) - certificate.noise.sum_of_centres(10)
    noise = noise + 10 * table.lowest if noise.mean() > 10 else noise
    above, below = np.mean(30 + noise >= 24), np.mean(18 + noise < 24)
    found = chance_released_rightly(LABELS, certificate, votes=votes, margin=0.1)
    assert found == pytest.approx(min(above, below), abs=0.02)  # five deviations of 20,000 draws


def test_labels_are_released_rightly_more_often_the_further_they_are_from_the_share() -> None:
    made = plan_question(LABELS, teachers=10, labels=5, votes=(1, 10), epsilons=(2.0,), queries=10)
    few, many = (each.released_rightly for each in made.outlooks)
    assert len(few) == len(MARGINS)
    assert list(many) == sorted(many)
    assert all(one < other for one, other in zip(few, many, strict=True))


def test_a_choice_is_planned_from_votes() -> None:
    with pytest.raises(InputError, match="made from votes"):
        plan_question(CHOICE, teachers=5)
