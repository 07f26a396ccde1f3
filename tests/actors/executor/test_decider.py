"""The decision table: how far a call has come, and what an attempt at it does next."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporality.actors.executor.decider import INTERRUPTED, NEXT, Claimant, Standing, Step, copy_of, standing
from temporality.protocol.agent import Effect
from temporality.protocol.tool import OperationClaimed, OperationRecord, OperationRecorded, ToolSucceeded

ME = Claimant("executor-a", 7, "n1")
MY_EARLIER_ATTEMPT = Claimant("executor-a", 7, "n0")
GONE_OWNER = Claimant("executor-b", 7, "n2")
HOLDER_OF_ANOTHER_COPY = Claimant("executor-b", 5, "n3")


def claimed_by(claimant: Claimant) -> OperationClaimed:
    return OperationClaimed(executor=str(claimant), effect="once")


def next_step(last: OperationRecord | None, effect: Effect, *, other_copy_is_queued: bool = False) -> Step:
    return NEXT[standing(last, ME, other_copy_is_queued=other_copy_is_queued), effect]


@pytest.mark.parametrize("effect", ["idempotent", "once"])
def test_call_that_nobody_claimed_is_claimed_before_anything_else(effect: Effect) -> None:
    assert next_step(None, effect) is Step.CLAIM


@pytest.mark.parametrize("effect", ["idempotent", "once"])
def test_own_claim_permits_to_act(effect: Effect) -> None:
    assert next_step(claimed_by(ME), effect) is Step.ACT


@pytest.mark.parametrize("effect", ["idempotent", "once"])
def test_recorded_call_is_answered_again(effect: Effect) -> None:
    record = OperationRecorded(executor=str(GONE_OWNER), outcome=ToolSucceeded(content="done"))
    assert next_step(record, effect) is Step.ANSWER


@pytest.mark.parametrize("owner", [GONE_OWNER, MY_EARLIER_ATTEMPT], ids=["another process", "this process"])
def test_once_call_whose_owner_is_gone_is_never_repeated(owner: Claimant) -> None:
    assert next_step(claimed_by(owner), "once") is Step.INTERRUPT
    assert (INTERRUPTED.error_class, INTERRUPTED.effect) == ("interrupted", "uncertain")


@pytest.mark.parametrize("owner", [GONE_OWNER, MY_EARLIER_ATTEMPT], ids=["another process", "this process"])
def test_idempotent_call_whose_owner_is_gone_is_run_again(owner: Claimant) -> None:
    assert next_step(claimed_by(owner), "idempotent") is Step.ACT


@pytest.mark.parametrize("effect", ["idempotent", "once"])
def test_call_held_through_another_queued_copy_is_left_to_its_holder(effect: Effect) -> None:
    assert next_step(claimed_by(HOLDER_OF_ANOTHER_COPY), effect, other_copy_is_queued=True) is Step.LEAVE


def test_call_claimed_through_a_copy_that_left_the_queue_has_no_owner() -> None:
    assert next_step(claimed_by(HOLDER_OF_ANOTHER_COPY), "once") is Step.INTERRUPT


def test_claim_that_does_not_name_its_copy_counts_as_abandoned() -> None:
    foreign = OperationClaimed(executor="somebody", effect="once")
    assert copy_of(foreign) is None
    assert next_step(foreign, "once") is Step.INTERRUPT


def test_table_decides_every_standing_of_every_call_with_an_effect() -> None:
    assert set(NEXT) == {(at, effect) for at in Standing for effect in get_args(Effect) if effect != "none"}


claimants = st.builds(
    Claimant,
    process=st.sampled_from(["executor-a", "executor-b"]),
    copy=st.integers(1, 2**63),
    attempt=st.sampled_from(["n1", "n2"]),
)


@given(claimants, claimants)
def test_claim_is_ones_own_only_if_process_copy_and_attempt_are_the_same(
    one: Claimant, other: Claimant
) -> None:
    mine = standing(claimed_by(one), other, other_copy_is_queued=False) is Standing.MINE
    assert mine == (one == other)
    assert copy_of(claimed_by(one)) == one.copy
