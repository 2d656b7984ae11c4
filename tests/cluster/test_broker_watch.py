"""The controller watches registrations, and probes a broker whose connection was lost."""

import asyncio
from typing import Any

import pytest

from ottla.cluster import broker_watch, membership
from ottla.controller import layout
from ottla.controller.alter_partition import ProposedIsr
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


async def test_a_vanished_broker_loses_its_leaderships(neighbours: Any, eventually: Any) -> None:
    first, second = await leads_two(neighbours, eventually)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    states = first.image.topics["t"].partitions
    assert {(state.leader, state.isr) for state in states} == {(1, (1,))}


async def test_a_broker_of_apache_kafka_is_no_broker_of_the_cluster(
    neighbours: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = await neighbours.start(1)
    session = first.membership.session
    await session.create(layout.broker_path(7), b'{"version":5,"endpoints":["A://h:9092"]}')
    await neighbours.start(2, live=False)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    assert caplog.text.count("broker 7 is Apache Kafka") == 1


async def test_a_broker_that_refuses_connections_is_gone_before_its_session_ends(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int]
) -> None:
    first, second = await leads_two(neighbours, eventually)
    neighbours.addresses[2] = refusing_address
    first.controller.disconnected(2)
    await eventually(lambda: set(first.image.brokers) == {1})
    assert await second.membership.session.exists(layout.broker_path(2)) is None


async def test_a_live_broker_that_refuses_connections_stays_registered(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int], caplog: Any
) -> None:
    """A firewall or a proxy may refuse for it."""
    first, second = [await neighbours.start(number) for number in (1, 2)]
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    version, epoch = first.image.version, second.registration.broker_epoch
    neighbours.addresses[2] = refusing_address
    for _ in range(2):
        await first.controller._watch._delete_if_refused(2)
    assert (first.image.version, second.registration.broker_epoch) == (version, epoch)
    assert "broker 2 is alive, and" in caplog.text


async def test_a_broker_that_still_listens_stays_registered(
    neighbours: Any, eventually: Any
) -> None:
    first, _ = await leads_two(neighbours, eventually)
    knocks = asyncio.Event()

    def knocked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        knocks.set()
        writer.close()

    server = await asyncio.start_server(knocked, "127.0.0.1")
    neighbours.addresses[2] = server.sockets[0].getsockname()
    version = first.image.version
    await first.controller._watch._delete_if_refused(2)
    await asyncio.wait_for(knocks.wait(), 20)
    assert first.image.version == version
    assert await first.membership.session.exists(layout.broker_path(2)) is not None
    server.close()
    await server.wait_closed()


async def test_a_listener_that_outlives_the_connection_is_probed_again(
    neighbours: Any, eventually: Any
) -> None:
    first, _ = await leads_two(neighbours, eventually)
    server: asyncio.Server

    def last_knock(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        server.close()

    server = await asyncio.start_server(last_knock, "127.0.0.1")
    neighbours.addresses[2] = server.sockets[0].getsockname()
    first.controller.disconnected(2)
    await eventually(lambda: set(first.image.brokers) == {1})
    await server.wait_closed()


async def test_a_registration_newer_than_the_image_is_not_deleted(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int]
) -> None:
    first, second = await leads_two(neighbours, eventually)
    watch, session = first.controller._watch, second.membership.session
    watch._changed = asyncio.Event()  # the controller does not get the following events yet
    path = layout.broker_path(2)
    data = (await session.get(path)).data
    await session.delete(path)
    again = await session.create(path, data, ephemeral=True)
    neighbours.addresses[2] = refusing_address
    await watch._delete_if_refused(2)
    assert (await session.exists(path)).created == again.created


async def both_sessions_end(neighbours: Any, first: Any, second: Any) -> None:
    """Ends the tenure, so that the controller watches nothing any more."""
    first.controller._watch.close()
    await neighbours.tree.expire(second.membership.session)
    await neighbours.tree.expire(first.membership.session)


def everybody_listens(monkeypatch: Any) -> asyncio.Event:
    """The probed brokers; the event is set after the first probe."""
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


async def test_brokers_whose_sessions_ended_together_keep_their_leaderships(
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


async def test_the_controller_does_not_wait_for_a_broker_that_stopped_listening(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)

    async def refuses(host: str, port: int) -> Probe:
        return Probe.REFUSED

    monkeypatch.setattr(broker_watch, "probe", refuses)
    monkeypatch.setattr(membership, "RECONNECTS_WITHIN_MS", 600_000)
    await both_sessions_end(neighbours, first, second)
    await eventually(lambda: {each[0] for each in leaders_and_epochs(first)} == {1})


async def test_the_wait_for_a_listening_broker_is_limited(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    everybody_listens(monkeypatch)
    monkeypatch.setattr(membership, "RECONNECTS_WITHIN_MS", -5_900)  # a tenth of a second is left
    await both_sessions_end(neighbours, first, second)
    await eventually(lambda: {each[0] for each in leaders_and_epochs(first)} == {1})


async def test_a_topic_created_meanwhile_waits_for_returning_brokers(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    asked = everybody_listens(monkeypatch)
    await both_sessions_end(neighbours, first, second)
    await asyncio.wait_for(asked.wait(), 20)
    making = asyncio.create_task(first.controller.create_topics([NewTopic("u", 1, 2)]))
    await asyncio.sleep(0.02)
    assert not making.done()
    assert set(first.image.brokers) == {
        1,
        2,
    }  # a client that sees only one broker drops the other
    second.membership.start()
    (made,) = await asyncio.wait_for(making, 20)
    assert made.outcome.code is ErrorCode.none


@pytest.mark.parametrize("how", ["created", "grown", "moved"])
async def test_new_replicas_may_be_on_a_broker_whose_watch_event_is_pending(
    neighbours: Any, eventually: Any, how: str
) -> None:
    first, second = await leads_two(neighbours, eventually)
    await first.controller.create_topics([NewTopic("one", assignments=((0, (1,)),))])
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    first.controller._watch._changed = asyncio.Event()  # not notified any more
    second.membership.start()
    await eventually(lambda: second.registration.broker_epoch > 0)
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


async def test_waiting_for_the_brokers_ends_with_the_tenure(
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


async def test_a_lost_response_is_retried(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first, second = await leads_two(neighbours, eventually)
    real = type(first.membership.session).children
    losses: list[Any] = []

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
    real = first.controller.brokers_are
    refusals: list[Any] = []

    async def brokers_are(live: Any) -> None:
        if len(refusals) < 2:
            refusals.append(set(live))
            raise ApiError(ErrorCode.kafka_storage_error, "no space left")
        await real(live)

    monkeypatch.setattr(first.controller, "brokers_are", brokers_are)
    await neighbours.tree.expire(second.membership.session)
    await eventually(lambda: set(first.image.brokers) == {1})
    assert refusals == [{1}, {1}]


async def test_after_the_tenure_nothing_is_watched(neighbours: Any, eventually: Any) -> None:
    first, _ = await leads_two(neighbours, eventually)
    watch = first.controller._watch
    first.controller.resign("for the test")
    await eventually(lambda: len(watch._background) == 0)


async def leads_too_much(neighbours: Any, eventually: Any, **settings: str) -> Any:
    """Controller 1 leads both partitions of topic t; broker 2 is the preferred leader of one."""
    first = await neighbours.start(1, **settings)
    first.config.leader_imbalance_check_interval_seconds = 0.005
    second = await neighbours.start(2, live=False)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 2, 2)])
    assert {state.leader for state in first.image.topics["t"].partitions} == {1, 2}
    await first.controller.shut_down(2, second.registration.broker_epoch)
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


async def test_preferred_leaders_lead_again_once_in_sync(neighbours: Any, eventually: Any) -> None:
    first = await leads_too_much(neighbours, eventually)
    epochs = {state.leader_epoch for state in first.image.topics["t"].partitions}
    await asyncio.sleep(0.02)
    assert leaders(first) == {1}
    await copies(first)
    await eventually(lambda: leaders(first) == {1, 2})
    states = first.image.topics["t"].partitions
    assert [state.leader for state in states] == [state.replicas[0] for state in states]
    assert max(state.leader_epoch for state in states) == max(epochs) + 1


async def test_leaders_stay_if_rebalancing_is_disabled(neighbours: Any, eventually: Any) -> None:
    first = await leads_too_much(neighbours, eventually, auto_leader_rebalance_enable="false")
    await copies(first)
    await asyncio.sleep(0.05)
    assert leaders(first) == {1}
    first.config.auto_leader_rebalance_enable = True
    await eventually(lambda: leaders(first) == {1, 2})


async def test_an_imbalance_below_the_limit_is_kept(neighbours: Any, eventually: Any) -> None:
    first = await leads_too_much(
        neighbours, eventually, leader_imbalance_per_broker_percentage="100"
    )
    await copies(first)
    await asyncio.sleep(0.05)
    assert leaders(first) == {1}


async def test_a_refused_rebalance_is_retried(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    first = await leads_too_much(neighbours, eventually)
    real = first.controller.rebalance
    refusals: list[Any] = []

    async def rebalance(only: Any) -> Any:
        if len(refusals) < 2:
            refusals.append(ErrorCode.kafka_storage_error)
            raise ApiError(refusals[-1])
        return await real(only)

    monkeypatch.setattr(first.controller, "rebalance", rebalance)
    await copies(first)
    await eventually(lambda: leaders(first) == {1, 2})
    assert len(refusals) == 2
