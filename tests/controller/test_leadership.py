"""The rule for one partition, for any state and any brokers."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.image import NO_LEADER, PartitionState, TopicImage
from ottla.controller.leadership import Brokers, is_unclean, unclean_allowed
from ottla.controller.reassignment import repaired

numbers = st.frozensets(st.integers(1, 4))
brokers = st.builds(Brokers, numbers, numbers, numbers, numbers, numbers)


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    replicas = draw(st.permutations([1, 2, 3, 4]))[: draw(st.integers(1, 4))]
    isr = draw(st.lists(st.sampled_from(replicas), unique=True))
    leader = draw(st.sampled_from([NO_LEADER, *isr]))
    removing = draw(st.sets(st.sampled_from(replicas)))
    adding = set(replicas) - removing
    parts = (tuple(sorted(adding)), tuple(sorted(removing))) if draw(st.booleans()) else ((), ())
    return PartitionState(leader, 5, tuple(replicas), tuple(isr), 0, *parts)


@given(states(), brokers, st.booleans())
def test_invariants_of_an_election(state: PartitionState, brokers: Brokers, unclean: bool) -> None:
    after = repaired(state, brokers, unclean=unclean)
    assert set(after.isr) <= set(after.replicas)
    assert after.leader_epoch >= state.leader_epoch
    if after.leader == NO_LEADER:
        # In-sync replicas stay, except those that lost their disk.
        assert set(state.isr) - set(after.isr) <= (
            set(brokers.without_disk) | (set(state.isr) - set(brokers.live)) | set(brokers.gone)
        )
        assert after.isr or set(state.isr) <= set(brokers.without_disk)
    else:
        assert after.leader in after.isr
        assert after.leader in brokers.live
        assert set(after.isr) <= set(brokers.live) | set(state.isr) - set(brokers.gone)
    if after.leader != state.leader:
        assert after.leader_epoch > state.leader_epoch
        assert after.leader == NO_LEADER or brokers.eligible(after.leader)
    if not unclean and len(state.replicas) > 1 and after.leader != NO_LEADER:
        assert not is_unclean(state, after, brokers)


@given(states(), brokers, st.booleans())
def test_an_election_is_idempotent(state: PartitionState, brokers: Brokers, unclean: bool) -> None:
    # Missing brokers have returned or not by now; the lost disks are known.
    again = Brokers(brokers.live, brokers.shutting_down)
    after = repaired(state, brokers, unclean=unclean)
    if after.leader != NO_LEADER:
        assert repaired(after, again, unclean=unclean) == after


def test_the_topics_setting_overrides_the_brokers() -> None:
    name = "unclean.leader.election.enable"
    for text, expected in ((None, (True, False)), ("TRUE", (True, True)), ("false", (False,) * 2)):
        topic = TopicImage("t", UUID(int=1), (), {} if text is None else {name: text})
        assert (unclean_allowed(topic, True), unclean_allowed(topic, False)) == expected
