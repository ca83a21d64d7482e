"""Signatures cover everything in a message, and hold for one kind of message only."""

from dataclasses import replace
from typing import Any

import pytest
from tests.protocol.parties import set_up

from dppp.errors import NotFromAggregator, SignatureFault
from dppp.protocol.messages import (
    BatchId,
    CertifiedList,
    Endorser,
    ListHash,
    ProofRequest,
    SignedShareProof,
    SignedShares,
)
from dppp.protocol.signing import require_from_aggregator, sign, verify_signature

BATCH, LIST = BatchId(b"b" * 32), ListHash(b"l" * 32)


def test_a_signature_of_shares_is_not_one_of_a_proof_with_the_same_bytes() -> None:
    setting = set_up(5, 1, 1)
    about: dict[str, Any] = {
        "task_id": setting.task.task_id,
        "batch_id": BATCH,
        "list_hash": LIST,
        "teacher": 2,
    }
    shares = sign(SignedShares(**about, shares=b"same"), setting.signer(2))
    verify_signature(setting.task, shares)
    with pytest.raises(SignatureFault):
        verify_signature(
            setting.task, SignedShareProof(**about, proof=b"same", signature=shares.signature)
        )


def test_a_signature_of_a_proof_request_is_not_one_of_a_certified_list() -> None:
    """Without endorsers the two hold the same parts."""
    setting = set_up(5, 1, 1)
    about: dict[str, Any] = {"task_id": setting.task.task_id, "batch_id": BATCH, "list_hash": LIST}
    asked = sign(ProofRequest(**about, tallies=b"same"), setting.aggregator_signer)
    require_from_aggregator(setting.task, asked)
    with pytest.raises(NotFromAggregator):
        require_from_aggregator(
            setting.task,
            CertifiedList(**about, tallies=b"same", endorsers=(), signature=asked.signature),
        )


def test_the_aggregator_signs_who_endorsed_a_list() -> None:
    setting = set_up(5, 1, 1)
    endorsers = tuple(Endorser(teacher=each, signature=bytes(64)) for each in (1, 2))
    certified = sign(
        CertifiedList(
            task_id=setting.task.task_id,
            batch_id=BATCH,
            list_hash=LIST,
            tallies=b"tallies",
            endorsers=endorsers,
        ),
        setting.aggregator_signer,
    )
    require_from_aggregator(setting.task, certified)
    others = (
        endorsers[:1],
        (endorsers[0], replace(endorsers[1], teacher=3)),
        (endorsers[0], replace(endorsers[1], signature=b"s" * 64)),
        (endorsers[0], replace(endorsers[1], digest=b"d" * 32)),
    )
    for changed in others:
        with pytest.raises(NotFromAggregator):
            require_from_aggregator(setting.task, replace(certified, endorsers=changed))
