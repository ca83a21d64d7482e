"""A refusal that a teacher signed is told as its reason; one that anybody made is not believed."""

from dataclasses import replace

import pytest
from tests.protocol.small import DEADLINE, NOW, rows, small
from tests.small_federation import SmallFederation, seal_table

from dppp.errors import (
    InputError,
    NotFromAggregator,
    QueryReused,
    RequestExpired,
    TaskSucceeded,
    WireError,
)
from dppp.federation import Parties, create_federation
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.events import Abort, Aborted, Output, Send, TeacherRefused
from dppp.protocol.messages import BatchRequest
from dppp.protocol.refusals import RefusalNotice, batch_named_in, make_notice, subject_of
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode

FAST, AWAY = 4, 5
AHEAD = 7_200


class Story:
    """A batch of which teacher 4's clock is two hours ahead, and teacher 5 is away."""

    def __init__(self, parties: SmallFederation | None = None) -> None:
        self.parties = parties or small()
        self.aggregator: Aggregator = self.parties.aggregator
        self.request = BatchRequest(
            deadline=DEADLINE, queries=seal_table(self.parties.task, rows(1, 2))
        )
        self.events: list[object] = []
        self.sends = self.take(self.aggregator.start(self.request, now=NOW))

    def take(self, output: Output) -> dict[int, Send]:
        self.events += output.events
        return {send.teacher: send for send in output.sends}

    def notice(self, teacher: int = FAST) -> bytes:
        data = self.sends[teacher].data
        with pytest.raises(RequestExpired) as refused:
            self.parties.teachers[teacher].handle(data, now=NOW + AHEAD)
        found = self.parties.teachers[teacher].notice_of(data, refused.value, now=NOW + AHEAD)
        assert found is not None
        return found

    def receive(self, teacher: int, data: bytes) -> None:
        self.take(self.aggregator.receive(teacher, data, now=NOW))

    def end(self) -> Abort:
        for teacher in (1, 2, 3):
            answer = self.parties.teachers[teacher].handle(self.sends[teacher].data, now=NOW)
            assert answer is not None
            self.receive(teacher, answer)
        self.take(self.aggregator.tick(DEADLINE + 1))
        (ended,) = (each for each in self.events if isinstance(each, Aborted))
        return ended.abort

    @property
    def refusals(self) -> list[TeacherRefused]:
        return [each for each in self.events if isinstance(each, TeacherRefused)]


def test_a_wrong_clock_is_shown_as_the_reason_and_not_as_missing() -> None:
    story = Story()
    story.receive(FAST, story.notice())
    (refused,) = story.refusals
    assert (refused.teacher, refused.rule) == (FAST, "RequestExpired")
    assert refused.clock_ahead_seconds == AHEAD
    abort = story.end()
    assert abort.missing == (AWAY,)
    assert "teacher 4 refused (RequestExpired; its clock is 7,200 s ahead)" in abort.reason


def test_a_teacher_that_refused_and_then_votes_counts() -> None:
    story = Story()
    story.receive(FAST, story.notice())
    answer = story.parties.teachers[FAST].handle(story.sends[FAST].data, now=NOW)
    assert answer is not None
    story.receive(FAST, answer)
    status = story.aggregator.status(story.request.batch_id)
    assert status is not None
    assert status.voters == (FAST,)


def test_the_same_refusal_is_told_once() -> None:
    story = Story()
    for _ in range(5):
        story.receive(FAST, story.notice())
    assert len(story.refusals) == 1


def forged(story: Story) -> dict[str, tuple[int, bytes]]:
    """What somebody at the broker could send in teacher 5's name."""
    good = decode(story.notice(), RefusalNotice)
    other = story.parties.setting.signer(1)
    return {
        "unsigned": (AWAY, encode(replace(good, teacher=AWAY, signature=bytes(64)))),
        "signed by another": (AWAY, encode(sign(replace(good, teacher=AWAY), other))),
        "another's under its name": (AWAY, encode(good)),
        "another rule": (FAST, encode(replace(good, rule="SecondList"))),
        "another time": (FAST, encode(replace(good, at=NOW))),
    }


@pytest.mark.parametrize("name", list(forged(Story())))
def test_what_the_teacher_did_not_sign_is_not_believed(name: str) -> None:
    story = Story()
    teacher, data = forged(story)[name]
    story.receive(teacher, data)
    assert story.refusals == []
    assert story.end().missing == (FAST, AWAY)


def test_without_the_check_of_signatures_anybody_would_be_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    teacher, data = forged(story)["unsigned"]
    monkeypatch.setattr("dppp.protocol.refusals.verify_signature", lambda *_: None)
    story.receive(teacher, data)
    assert [each.teacher for each in story.refusals] == [AWAY]


def test_a_refusal_of_another_batch_is_not_believed_in_this_one() -> None:
    parties = small()
    old = Story(parties)
    data = old.notice()
    old.end()
    story = Story(parties)
    story.receive(FAST, data)
    assert story.refusals == []


def test_a_forger_is_told_nothing() -> None:
    story = Story()
    error = NotFromAggregator("who are you")
    assert story.parties.teachers[FAST].notice_of(b"data", error, now=NOW) is None


def test_a_refusal_holds_no_text_of_the_teachers_machine() -> None:
    story = Story()
    error = QueryReused("the query is in /srv/hospital/ledger.db", hint="ask Mary")
    data = story.parties.teachers[FAST].notice_of(story.sends[FAST].data, error, now=NOW)
    assert data is not None
    assert b"hospital" not in data
    assert b"Mary" not in data


def test_a_rule_that_is_not_told_is_no_refusal() -> None:
    story = Story()
    good = decode(story.notice(), RefusalNotice)
    with pytest.raises(InputError, match="names no rule"):
        replace(good, rule="<b>bold</b>")
    with pytest.raises((WireError, InputError)):
        decode(encode(good).replace(b"RequestExpired", b"RequestExpires"), RefusalNotice)


@pytest.fixture
def masked() -> Parties:
    from tests.protocol.small import CLASS_NAMES, FEATURES, certificate, first_feature

    return create_federation(
        name="masked",
        class_names=CLASS_NAMES,
        features=FEATURES,
        certificate=certificate(),
        models=[first_feature] * 5,
    )


def test_under_masks_a_clock_that_is_days_ahead_is_told_before_there_is_a_batch_to_name(
    masked: Parties,
) -> None:
    """It refuses the request for its key of the epoch, which is about no batch."""
    request = BatchRequest(deadline=DEADLINE, queries=seal_table(masked.task, rows(1)))
    output = masked.aggregator.start(request, now=NOW)
    asked = {send.teacher: send.data for send in output.sends}
    assert batch_named_in(asked[FAST]) is None
    later = NOW + 7 * 86_400
    with pytest.raises(Exception, match="epoch") as refused:
        masked.teachers[FAST].handle(asked[FAST], now=later)
    notice = masked.teachers[FAST].notice_of(asked[FAST], refused.value, now=later)  # type: ignore[arg-type]
    assert notice is not None
    told = masked.aggregator.receive(FAST, notice, now=NOW).events
    assert [each.rule for each in told if isinstance(each, TeacherRefused)] == ["EpochOver"]
    ended = masked.aggregator.tick(DEADLINE + 1).events[-1]
    assert isinstance(ended, Aborted)
    assert FAST not in ended.abort.missing
    assert "teacher 4 refused (EpochOver; its clock is 604,800 s ahead)" in ended.abort.reason


def test_every_message_about_a_batch_names_it_in_its_first_bytes() -> None:
    """So that a line of a log can, without reading the rest."""
    story = Story()
    batch = story.request.batch_id
    assert batch_named_in(story.sends[1].data) == batch
    assert subject_of(story.sends[1].data) == batch
    answer = story.parties.teachers[1].handle(story.sends[1].data, now=NOW)
    assert answer is not None
    assert batch_named_in(answer) == batch
    assert batch_named_in(b"\xa8batch_id\xc4\x20short") is None
    signer = story.parties.setting.signer(1)
    for error in (RequestExpired("late"), TaskSucceeded("another took its place")):
        assert make_notice(story.parties.task, 1, signer, b"", error, now=NOW) is not None
