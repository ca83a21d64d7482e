"""Random runs: messages lost, doubled, late and out of order, roles restarted, one colluder.

A seed gives the same faults in every run. Whatever happens, the sums are those of the listed
entries, nobody is charged twice, no honest teacher is blamed, and of each attempt one list at most
is opened.
"""

from collections.abc import Callable

import pytest
from tests.protocol.with_masks.colluders import (
    add_to_rows,
    complaining,
    deal_badly,
    endorse_another_sum,
    giving_other_seed_rows,
    objecting_to,
    showing_another_root,
    showing_other_rows,
    silent_about,
)
from tests.protocol.with_masks.federation import BEGIN, Federation, set_up
from tests.small_federation import seeded

from dppp.masks.dealing import seed_row_bytes
from dppp.masks.equal_logarithms import PROOF_BYTES
from dppp.masks.sealing import Purpose
from dppp.protocol.events import Abort, Output
from dppp.protocol.receipt import Receipt
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode, kind_of
from dppp.protocol.with_masks.messages import (
    CertifiedSum,
    DeliveredList,
    RootRequest,
    RowRequest,
    SealEvidence,
    SeedRows,
    WithdrawalRequest,
)

LONGEST_SECONDS = 2500
RUNS = 60


class Storm:
    """One run: a network that does what the seed says."""

    def __init__(self, seed: int) -> None:
        self.source = seeded("storm", seed)
        trust = self.source.choice([(5, 1, 1), (6, 1, 1), (7, 1, 2), (7, 2, 1), (5, 1, 0)])
        self.federation = Federation(set_up(*trust))
        self.colluder = self.source.choice([None, *self.federation.setting.everybody])
        self.flying: list[tuple[int, Callable[[], None]]] = []
        self.roughness = self.source.choice([0.1, 0.4, 1])
        self.quiet_after = BEGIN + self.source.randint(20, 120)
        if self.colluder is not None:
            self.misbehave(self.colluder)

    def misbehave(self, colluder: int) -> None:
        federation, source = self.federation, self.source
        signer = federation.setting.signer(colluder)
        others = [each for each in federation.setting.everybody if each != colluder]
        some = source.sample(others, source.randint(1, len(others)))
        purpose = source.choice(list(Purpose))
        change = source.choice(
            [
                None,
                endorse_another_sum,
                deal_badly(secret_rows=add_to_rows(some)),
                deal_badly(seed_rows=add_to_rows(some)),
                deal_badly(break_check_block=True),
                deal_badly(break_seals=[(each, purpose) for each in some]),
            ]
        )
        if change is not None:
            federation.corrupt(colluder, change)
        kinds = (DeliveredList, WithdrawalRequest, RootRequest, RowRequest, CertifiedSum)
        falsely = complaining(colluder, signer, lambda _: (b"\x09" * 32, bytes(PROOF_BYTES)))
        answer = source.choice(
            [
                None,
                silent_about(source.choice(kinds).KIND),
                objecting_to(some[0], colluder, signer, purpose=int(purpose), then=falsely),
                objecting_to(some[0], colluder, signer, then=silent_about(SealEvidence.KIND)),
                showing_another_root(signer),
                showing_other_rows(signer),
                giving_other_seed_rows(
                    signer,
                    [source.randrange(4)],
                    row_bytes=seed_row_bytes(federation.task.parameters),
                ),
            ]
        )
        if answer is not None:
            federation.answers[colluder] = answer

    def fly(self, act: Callable[[], None]) -> None:
        """Put a message on the wire: lost, doubled or late, until the storm is over."""
        is_stormy = self.federation.now < self.quiet_after
        is_stormy = is_stormy and self.source.random() < self.roughness
        copies = self.source.choices([0, 1, 2], [12, 80, 8])[0] if is_stormy else 1
        for _ in range(copies):
            late = self.source.choice([0, 0, 0, 1, 1, 3, 8, 25]) if is_stormy else 0
            self.flying.append((self.federation.now + late, act))

    def send(self, output: Output) -> None:
        self.federation.events += output.events
        for each in output.sends:
            self.fly(lambda each=each: self.arrive(each.teacher, each.data))  # type: ignore[misc]

    def arrive(self, teacher: int, data: bytes) -> None:
        for reply in self.federation.deliver(teacher, data):
            self.fly(
                lambda reply=reply: self.send(  # type: ignore[misc]
                    self.federation.aggregator.receive(teacher, reply, now=self.federation.now)
                )
            )

    def run(self) -> None:
        federation, last = self.federation, BEGIN + LONGEST_SECONDS
        self.send(federation.start(federation.request(deadline=2000)))
        after = None
        while federation.now < last and (after is None or federation.now < after):
            self.one_second()
            if federation.end is not None and after is None:
                after = federation.now + 30  # what is late still arrives

    def one_second(self) -> None:
        federation = self.federation
        for _ in range(50):
            due = [each for each in self.flying if each[0] <= federation.now]
            if not due:
                break
            self.flying = [each for each in self.flying if each[0] > federation.now]
            self.source.shuffle(due)
            for _, act in due:
                act()
        federation.now += 1
        if federation.now < self.quiet_after:
            self.maybe_restart()
        self.send(federation.aggregator.tick(federation.now))
        if federation.now % 3 == 0:
            self.send(federation.aggregator.remind())

    def maybe_restart(self) -> None:
        if self.source.random() < 0.05:
            self.federation.start_teacher(self.source.choice(self.federation.setting.everybody))
        if self.source.random() < 0.03:
            self.send(self.federation.restart_aggregator())


def answers(federation: Federation) -> dict[int, dict[int, set[bytes]]]:
    """By attempt and teacher, the lists that it gave rows of seeds for."""
    found: dict[int, dict[int, set[bytes]]] = {}
    for teacher, said in federation.sent.items():
        for data in said:
            if kind_of(data) == SeedRows.KIND:
                rows = decode(data, SeedRows)
                of_attempt = found.setdefault(rows.attempt, {})
                of_attempt.setdefault(teacher, set()).add(rows.list_hash)
    return found


@pytest.mark.parametrize("seed", range(RUNS))
def test_no_invariant_breaks_in_a_storm(seed: int) -> None:
    storm = Storm(seed)
    storm.run()
    federation = storm.federation
    assert federation.end is not None, "the batch has not ended"
    assert set(federation.blamed) <= {storm.colluder}, federation.blamed
    for each in federation.setting.everybody:
        assert federation.charged(each) in (0, 2)
        if each != storm.colluder and any(each in given for given in answers(federation).values()):
            assert federation.charged(each) == 2
    for given in answers(federation).values():
        assert len(set().union(*given.values())) == 1
    if isinstance(federation.end, Receipt):
        require_released(federation, federation.end)
    else:
        require_named(federation.end)


def require_released(federation: Federation, receipt: Receipt) -> None:
    federation.require_right_sums(receipt)
    assert {federation.charged(each) for each in receipt.participants} == {2}
    for attempt, given in answers(federation).items():
        is_enough = len(given) >= federation.task.trust.threshold
        assert is_enough == (attempt == receipt.attempt)
    transcript = federation.aggregator.transcript(federation.request().batch_id)
    assert transcript is not None
    verify_transcript(transcript.to_bytes(), expected_task=federation.task.task_id)


def require_named(abort: Abort) -> None:
    assert abort.culprits or abort.missing, abort


def test_storms_end_in_releases_and_in_second_attempts_often_enough_to_tell() -> None:
    ends = []
    for seed in range(0, RUNS, 2):
        storm = Storm(seed)
        storm.run()
        ends.append((type(storm.federation.end), storm.federation.attempts))
    assert sum(kind is Receipt for kind, _ in ends) > len(ends) / 4
    assert any(attempts > 1 for _, attempts in ends)
    assert any(kind is Abort for kind, _ in ends)
