"""The controller sees who comes and goes, and looks closer where a connection broke off."""

import asyncio
from typing import Any

import pytest

from ottla.broker import broker_watch
from ottla.controller import layout
from ottla.controller.in_sync_changes import ProposedIsr
from ottla.controller.topics import MorePartitions, NewTopic
from ottla.coordination.tree import ConnectionLostError
from ottla.network.peer import Probe
from ottla.protocol.errors import ApiError, ErrorCode


async def leads_two(neighbours: Any, eventually: Any) -> tuple[Any, Any]:
    """A controller, 1, and a broker, 2, that leads the one partition of topic t."""
    first = await neighbours.start(1)
    second = await neighbours.start(2, live=False)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 2, 2)])
    assert {state.leader for state in first.image.topics["t"].partitions} == {1, 2}
    return first, second


async def test_who_vanishes_leads_no_more(neighbours: Any, eventually: Any) -> None:
    first, second = await leads_two(neighbours, eventually)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    states = first.image.topics["t"].partitions
    assert {(state.leader, state.isr) for state in states} == {(1, (1,))}


async def test_who_refuses_connections_is_gone_before_its_session(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int]
) -> None:
    first, second = await leads_two(neighbours, eventually)
    neighbours.addresses[2] = refusing_address
    first.controller.hung_up(2)
    await eventually(lambda: set(first.image.brokers) == {1})
    assert await second.membership.session.exists(layout.broker_path(2)) is None


async def test_who_listens_still_is_left_alone(neighbours: Any, eventually: Any) -> None:
    first, _ = await leads_two(neighbours, eventually)
    knocks = asyncio.Event()
    server = await asyncio.start_server(
        lambda reader, writer: (knocks.set(), writer.close()), "127.0.0.1"
    )
    neighbours.addresses[2] = server.sockets[0].getsockname()
    version = first.image.version
    await first.controller._watch._look_closer(2)
    await asyncio.wait_for(knocks.wait(), 20)
    assert first.image.version == version
    assert await first.membership.session.exists(layout.broker_path(2)) is not None
    server.close()
    await server.wait_closed()


async def test_a_listener_that_outlasts_the_connection_is_looked_at_again(
    neighbours: Any, eventually: Any
) -> None:
    first, _ = await leads_two(neighbours, eventually)
    server: asyncio.Server

    def last_knock(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        server.close()

    server = await asyncio.start_server(last_knock, "127.0.0.1")
    neighbours.addresses[2] = server.sockets[0].getsockname()
    first.controller.hung_up(2)
    await eventually(lambda: set(first.image.brokers) == {1})
    await server.wait_closed()


async def test_a_registration_newer_than_the_image_s_is_left_alone(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int]
) -> None:
    first, second = await leads_two(neighbours, eventually)
    watch, session = first.controller._watch, second.membership.session
    watch._changed = asyncio.Event()  # of what comes now the controller does not hear yet
    path = layout.broker_path(2)
    data = (await session.get(path)).data
    await session.delete(path)
    again = await session.create(path, data, ephemeral=True)
    neighbours.addresses[2] = refusing_address
    await watch._look_closer(2)
    assert (await session.exists(path)).created == again.created


async def both_sessions_end(neighbours: Any, first: Any, second: Any) -> None:
    """Nobody can act on it: the controller looks at nobody any more."""
    first.controller._watch.close()
    await neighbours.tree.expire(second.membership.session)
    await neighbours.tree.expire(first.membership.session)


def everybody_listens(monkeypatch: Any) -> asyncio.Event:
    """Whoever is probed; the event is set once somebody was."""
    asked = asyncio.Event()

    async def listens(host: str, port: int) -> Probe:
        asked.set()
        return Probe.ALIVE

    monkeypatch.setattr(broker_watch, "probe", listens)
    return asked


def leaders_and_epochs(node: Any) -> set[tuple[int, int, tuple[int, ...]]]:
    return {
        (state.leader, state.leader_epoch, tuple(sorted(state.isr)))
        for state in node.image.topics["t"].partitions
    }


async def test_whose_sessions_ended_together_go_on_as_before(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    before, epoch = leaders_and_epochs(first), first.image.brokers[2].epoch
    asked = everybody_listens(monkeypatch)
    await both_sessions_end(neighbours, first, second)
    await asyncio.wait_for(asked.wait(), 20)
    assert first.image.controller_epoch == 2
    assert leaders_and_epochs(first) == before
    second.membership.start()
    await eventually(lambda: 2 in first.image.brokers and first.image.brokers[2].epoch > epoch)
    await eventually(lambda: first.image.directories[2].epoch == first.image.brokers[2].epoch)
    assert leaders_and_epochs(first) == before == {(1, 0, (1, 2)), (2, 0, (1, 2))}


async def test_who_listens_no_more_is_not_waited_for(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)

    async def refuses(host: str, port: int) -> Probe:
        return Probe.REFUSED

    monkeypatch.setattr(broker_watch, "probe", refuses)
    monkeypatch.setattr(broker_watch, "RECONNECTS_WITHIN_MS", 600_000)
    await both_sessions_end(neighbours, first, second)
    await eventually(lambda: {each[0] for each in leaders_and_epochs(first)} == {1})


async def test_who_listens_and_does_not_come_back_is_not_waited_for_long(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    everybody_listens(monkeypatch)
    monkeypatch.setattr(broker_watch, "RECONNECTS_WITHIN_MS", -5_900)  # a tenth of a second is left
    await both_sessions_end(neighbours, first, second)
    await eventually(lambda: {each[0] for each in leaders_and_epochs(first)} == {1})


async def test_a_topic_made_meanwhile_waits_for_those_who_come_back(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    asked = everybody_listens(monkeypatch)
    await both_sessions_end(neighbours, first, second)
    await asyncio.wait_for(asked.wait(), 20)
    making = asyncio.create_task(first.controller.create_topics([NewTopic("u", 1, 2)]))
    await asyncio.sleep(0.02)
    assert not making.done()
    assert set(first.image.brokers) == {1, 2}  # whoever is told one broker forgets the other
    second.membership.start()
    (made,) = await asyncio.wait_for(making, 20)
    assert made.outcome.code is ErrorCode.none


@pytest.mark.parametrize("how", ["created", "grown", "moved"])
async def test_new_replicas_may_be_on_a_broker_that_the_watch_has_not_told_of(
    neighbours: Any, eventually: Any, how: str
) -> None:
    first, second = await leads_two(neighbours, eventually)
    await first.controller.create_topics([NewTopic("one", assignments=((0, (1,)),))])
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    first.controller._watch._changed = asyncio.Event()  # told no more
    second.membership.start()
    await eventually(lambda: second.membership.broker_epoch > 0)
    path = layout.broker_path(2)
    while await first.membership.session.exists(path) is None:
        await asyncio.sleep(0.001)
    if how == "created":
        (made,) = await first.controller.create_topics([NewTopic("u", 1, 2)])
        outcome = made.outcome
    elif how == "grown":
        (made,) = await first.controller.add_partitions([MorePartitions("t", 3)])
        outcome = made.outcome
    else:
        moved = await first.controller.alter_reassignments(
            {"one": {0: (2,)}}, allow_factor_change=True
        )
        outcome = moved["one"][0]
    assert outcome.code is ErrorCode.none
    assert set(first.image.brokers) == {1, 2}


async def test_who_waits_for_the_brokers_hears_of_the_end_of_the_term(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    everybody_listens(monkeypatch)
    await both_sessions_end(neighbours, first, second)
    await eventually(lambda: first.image.controller_epoch == 2 and first.controller.active)
    making = asyncio.create_task(first.controller.create_topics([NewTopic("u", 1, 2)]))
    await asyncio.sleep(0.02)
    first.controller.resign("for the test")
    with pytest.raises(ApiError) as refused:
        await asyncio.wait_for(making, 20)
    assert refused.value.code is ErrorCode.not_controller


async def test_a_lost_answer_is_asked_for_again(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    real, losses = type(first.membership.session).children, []

    async def children(self: Any, path: str, watch: Any = None) -> Any:
        if self is first.membership.session and len(losses) < 2:
            losses.append(path)
            raise ConnectionLostError(path)
        return await real(self, path, watch)

    monkeypatch.setattr(type(first.membership.session), "children", children)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    assert losses == [layout.BROKER_IDS] * 2


async def test_a_full_disk_does_not_end_the_watch(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    real, refusals = first.controller.brokers_are, []

    async def brokers_are(live: Any) -> None:
        if len(refusals) < 2:
            refusals.append(set(live))
            raise ApiError(ErrorCode.kafka_storage_error, "no space left")
        await real(live)

    monkeypatch.setattr(first.controller, "brokers_are", brokers_are)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    assert refusals == [{1}, {1}]


async def test_after_the_term_nothing_is_watched(neighbours: Any, eventually: Any) -> None:
    first, _ = await leads_two(neighbours, eventually)
    watch = first.controller._watch
    first.controller.resign("for the test")
    await eventually(lambda: len(watch._background) == 0)


async def leads_too_much(neighbours: Any, eventually: Any, **settings: str) -> Any:
    """A controller, 1, that leads both partitions of topic t, one of which is broker 2's."""
    first = await neighbours.start(1, **settings)
    first.config.leader_imbalance_check_interval_seconds = 0.005
    second = await neighbours.start(2, live=False)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 2, 2)])
    assert {state.leader for state in first.image.topics["t"].partitions} == {1, 2}
    await first.controller.shut_down(2, second.membership.broker_epoch)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    await neighbours.start(2, live=False)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    topic = first.image.topics["t"]
    assert {(state.leader, state.isr) for state in topic.partitions} == {(1, (1,))}
    return first


async def copies(first: Any) -> None:
    """Broker 2 has caught up."""
    topic = first.image.topics["t"]
    isr = tuple((each, first.image.brokers[each].epoch) for each in (1, 2))
    proposals = [
        ProposedIsr(topic.topic_id, index, state.leader_epoch, state.partition_epoch, isr)
        for index, state in enumerate(topic.partitions)
    ]
    answers = await first.controller.alter_partitions(1, isr[0][1], proposals)
    assert {answer.code for answer in answers} == {ErrorCode.none}


def leaders(first: Any) -> set[int]:
    return {state.leader for state in first.image.topics["t"].partitions}


async def test_preferred_leaders_that_are_in_sync_again_lead_again(
    neighbours: Any, eventually: Any
) -> None:
    first = await leads_too_much(neighbours, eventually)
    epochs = {state.leader_epoch for state in first.image.topics["t"].partitions}
    await asyncio.sleep(0.02)
    assert leaders(first) == {1}
    await copies(first)
    await eventually(lambda: leaders(first) == {1, 2})
    states = first.image.topics["t"].partitions
    assert [state.leader for state in states] == [state.replicas[0] for state in states]
    assert max(state.leader_epoch for state in states) == max(epochs) + 1


async def test_leaders_stay_where_no_rebalance_is_wanted(neighbours: Any, eventually: Any) -> None:
    first = await leads_too_much(neighbours, eventually, auto_leader_rebalance_enable="false")
    await copies(first)
    await asyncio.sleep(0.05)
    assert leaders(first) == {1}
    first.config.auto_leader_rebalance_enable = True
    await eventually(lambda: leaders(first) == {1, 2})


async def test_a_few_leaders_elsewhere_are_left_there(neighbours: Any, eventually: Any) -> None:
    first = await leads_too_much(
        neighbours, eventually, leader_imbalance_per_broker_percentage="100"
    )
    await copies(first)
    await asyncio.sleep(0.05)
    assert leaders(first) == {1}


async def test_a_rebalance_that_is_refused_is_tried_again(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first = await leads_too_much(neighbours, eventually)
    real, refusals = first.controller.rebalance, []

    async def rebalance(only: Any) -> Any:
        if len(refusals) < 2:
            refusals.append(ErrorCode.kafka_storage_error)
            raise ApiError(refusals[-1])
        return await real(only)

    monkeypatch.setattr(first.controller, "rebalance", rebalance)
    await copies(first)
    await eventually(lambda: leaders(first) == {1, 2})
    assert len(refusals) == 2
