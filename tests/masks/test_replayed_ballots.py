"""An aggregator delivers an old ballot of an honest teacher again, in another attempt.

The attack. Attempt 1 is given up: t teachers say that they will never open it, and every dealer
shows its root. From then on only the pad hides teacher 3's vote. The aggregator now puts teacher
3's old header and seals into the list of attempt 2. The others do not check signatures of headers,
so they would endorse the list and answer with their rows of teacher 3's *old* seed. With the root
and the seed the aggregator takes the mask and the pad off one ballot: teacher 3's vote alone.

The defence: seals are bound to batch and attempt, so an old one does not open. In the control they
are not, as if both attempts were one, and the vote is read.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.masks.rounds import EPOCH, VOTES_SEED, Round
from tests.masks.test_rounds import parameters_for

from dppp.errors import SealUnopened
from dppp.masks.ballots import apply_pad
from dppp.masks.blame import recompute_dealing
from dppp.masks.dealing import root_of
from dppp.masks.epoch_keys import own_row_key
from dppp.masks.opening import add_blocks, open_counts, recover_seeds
from dppp.masks.sealing import Purpose

pytestmark = pytest.mark.attack

PARAMETERS = parameters_for(5, 1, 1)
EVERYONE = (1, 2, 3, 4, 5)
VICTIM = 3
VOTE = np.arange(30, dtype=np.int64) * 7


def two_attempts(*, second_votes_seed: bytes) -> tuple[Round, Round]:
    """The same teachers and epoch keys; the victim's old ballot stands in the second list."""
    first = Round(PARAMETERS, EVERYONE)
    first.cast({each: VOTE + each for each in EVERYONE})
    second = Round(PARAMETERS, EVERYONE, votes_seed=second_votes_seed)
    second.secrets = first.secrets
    second.cast({each: VOTE + each for each in EVERYONE if each != VICTIM})
    second.headers[VICTIM], second.bodies[VICTIM] = first.headers[VICTIM], first.bodies[VICTIM]
    return first, second


def read_vote(first: Round, second: Round) -> NDArray[np.int64]:
    """What the aggregator makes of the victim's shown root and the answers to the second list."""
    shown = root_of(own_row_key(first.secrets[VICTIM], EPOCH), first.headers[VICTIM].salt)
    dealing = recompute_dealing(PARAMETERS, EPOCH, first.headers[VICTIM], shown)
    answers = {each: second.answer(each) for each in (1, 2, 4, 5)}
    digests = [second.headers[each].seed_digest for each in EVERYONE]
    seeds, wrong = recover_seeds(PARAMETERS, answers, digests)
    assert not wrong
    blocks = apply_pad(first.bodies[VICTIM].votes, seeds[VICTIM - 1])
    masked = add_blocks(PARAMETERS, [blocks], count=1)
    return open_counts(PARAMETERS, first.votes_seed, masked, dealing.secret, counts=first.counts)


@pytest.mark.parametrize("purpose", Purpose)
def test_nobody_opens_a_ballot_of_another_attempt(purpose: Purpose) -> None:
    _, second = two_attempts(second_votes_seed=b"the next attempt of this test")
    for recipient in (1, 2, 4, 5):
        with pytest.raises(SealUnopened) as caught:
            second.open_rows(recipient, purpose)
        assert caught.value.dealers == (VICTIM,)


def test_a_seal_that_is_not_bound_to_its_attempt_gives_a_vote_away() -> None:
    first, second = two_attempts(second_votes_seed=VOTES_SEED)
    assert (read_vote(first, second) == VOTE + VICTIM).all()


def test_a_header_with_other_votes_does_not_go_with_the_old_seals() -> None:
    shown = Round(PARAMETERS, EVERYONE)
    shown.cast(dict.fromkeys(EVERYONE, VOTE))
    shown.headers[VICTIM] = replace(shown.headers[VICTIM], votes_digest=bytes(32))
    with pytest.raises(SealUnopened) as caught:
        shown.open_rows(1, Purpose.SECRET_ROW)
    assert caught.value.dealers == (VICTIM,)
