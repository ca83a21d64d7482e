from tests.protocol.small import federation, rows, small

from dppp.federation import Federation
from dppp.federation_processes import TeacherProcesses
from dppp.protocol.transcript import verify_transcript


def test_teachers_in_processes_answer_as_teachers_here() -> None:
    founded = small()
    with TeacherProcesses(founded.teachers, 2) as deliver:
        spread = Federation(aggregator=founded.aggregator, deliver=deliver)
        for _ in range(2):
            outcome = spread.ask(rows(0, 1, 2))
            verified = verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True)
            assert verified.ballots == 5


def test_teachers_in_processes_keep_their_ledgers() -> None:
    founded = small()
    with TeacherProcesses(founded.teachers, 3) as deliver:
        spread = Federation(aggregator=founded.aggregator, deliver=deliver)
        spread.ask(rows(*[1] * 30))
        spread.ask(rows(*[1] * 10))
    federation(founded).ask(rows(1))  # the ledgers here were never touched
