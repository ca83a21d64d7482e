from tests.protocol.small import federation, rows, small

from dppp.federation import Federation, deliver_here
from dppp.federation_processes import TeacherProcesses
from dppp.protocol.transcript import verify_transcript


def test_teachers_in_processes_answer_as_teachers_here() -> None:
    founded = small()
    with TeacherProcesses(founded.teachers, 2) as deliver:
        spread = Federation(aggregator=founded.aggregator, deliver=deliver)
        for _ in range(2):
            outcome = spread.ask(rows(0, 1, 2), fresh=True)
            assert outcome.transcript is not None
            verified = verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True)
            assert verified.ballots == 5


def test_progress_is_told_of_every_teacher() -> None:
    here, there = small(), small()
    told: dict[str, list[tuple[str, int, int]]] = {"here": [], "there": []}
    deliver = deliver_here(here.teachers, progress=lambda *step: told["here"].append(step))
    Federation(aggregator=here.aggregator, deliver=deliver).ask(rows(0, 1))
    with TeacherProcesses(
        there.teachers, 2, progress=lambda *step: told["there"].append(step)
    ) as spread:
        Federation(aggregator=there.aggregator, deliver=spread).ask(rows(0, 1))
    votes = [("batch request", done, 5) for done in range(1, 6)]
    shares = [("ballot list", done, 4) for done in range(1, 5)]
    assert told == {"here": votes + shares, "there": votes + shares}


def test_teachers_in_processes_keep_their_ledgers() -> None:
    founded = small()
    with TeacherProcesses(founded.teachers, 3) as deliver:
        spread = Federation(aggregator=founded.aggregator, deliver=deliver)
        spread.ask(rows(*[1] * 30))
        spread.ask(rows(*[2] * 10))
    federation(founded).ask(rows(1))  # the ledgers here were never touched
