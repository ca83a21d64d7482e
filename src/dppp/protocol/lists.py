"""Rules for every list of ballots, whatever seals them: how long it is, and what is endorsed."""

from collections.abc import Sequence

from dppp.errors import ListFault
from dppp.protocol.messages import BatchId, ListHash, ListStatement, tally_hash
from dppp.protocol.task import Task


def require_complete(task: Task, participants: Sequence[int]) -> None:
    """Refuse a list without N - D ballots of distinct teachers of the task, in order."""
    require_enough(task, len(participants))
    if list(participants) != sorted(set(participants)):
        raise ListFault("the list has a teacher twice or is out of order; refuse it")
    if not 1 <= participants[0] <= participants[-1] <= len(task.teachers):
        raise ListFault("the list names teachers that the task does not have; refuse it")


def require_enough(task: Task, ballots: int) -> None:
    """Refuse a list that is too short for enough noise, or longer than there are teachers."""
    needed = task.trust.ballots_needed
    if not needed <= ballots <= len(task.teachers):
        raise ListFault(
            f"the list has {ballots} ballots, expected {needed} to {len(task.teachers)}: "
            "with fewer there may be too little noise; refuse it"
        )


def statement_of(
    task: Task,
    *,
    batch: BatchId,
    of_list: ListHash,
    tallies: bytes,
    participants: Sequence[int],
    key_id: bytes | None = None,
) -> ListStatement:
    """What teachers endorse of a list.

    The key is the task's; under masks the roster's hash stands in its place. Tallies are what the
    endorser worked out itself: under masks it works out none.
    """
    return ListStatement(
        task_id=task.task_id,
        batch_id=batch,
        key_id=task.key_id if key_id is None else key_id,
        list_hash=of_list,
        tally_hash=tally_hash(tallies),
        participants=tuple(participants),
    )
