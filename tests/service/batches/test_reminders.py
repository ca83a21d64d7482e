"""When a batch is reminded of: soon, then rarely, and never before a slow line has carried it."""

from dppp.protocol.batch import LEAST_BYTES_PER_SECOND
from dppp.protocol.messages import BatchId
from dppp.service.batches.reminders import FIRST_SECONDS, LONGEST_SECONDS, Reminders

BATCH = BatchId(bytes(32))


class Story:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.reminders = Reminders(lambda: self.now)
        self.reminders.note_progress(BATCH)

    def due_within(self, seconds: int) -> list[int]:
        """After how many seconds it was due."""
        found = []
        for second in range(1, seconds + 1):
            self.now += 1
            if self.reminders.due():
                found.append(second)
        return found


def test_a_short_batch_is_reminded_of_soon_and_then_less_and_less_often() -> None:
    assert Story().due_within(300) == [10, 30, 70, 130, 190, 250]


def test_a_long_batch_is_not_reminded_of_before_it_can_have_arrived() -> None:
    story = Story()
    story.reminders.note_sent(BATCH, 50 * LEAST_BYTES_PER_SECOND)
    first, second, *_ = story.due_within(300)
    assert first == FIRST_SECONDS + 50
    assert second - first >= 2 * FIRST_SECONDS + 50


def test_an_answer_makes_the_next_reminder_come_soon_again() -> None:
    story = Story()
    story.due_within(200)
    story.reminders.note_progress(BATCH)
    assert story.due_within(20) == [FIRST_SECONDS]


def test_a_clock_that_is_put_back_does_not_put_off_reminders_for_long() -> None:
    story = Story()
    story.now -= 100_000
    assert story.due_within(int(LONGEST_SECONDS))[0] == FIRST_SECONDS + 1


def test_a_batch_that_ended_is_not_reminded_of() -> None:
    story = Story()
    story.reminders.forget(BATCH)
    assert story.due_within(100) == []
