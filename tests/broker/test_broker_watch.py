"""The controller sees who comes and goes, and looks closer where a connection broke off."""

import asyncio
from typing import Any

from ottla.controller import layout
from ottla.controller.coordination import ConnectionLostError
from ottla.controller.topics import NewTopic


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


async def test_after_the_term_nothing_is_watched(neighbours: Any, eventually: Any) -> None:
    first, _ = await leads_two(neighbours, eventually)
    watch = first.controller._watch
    first.controller.resign("for the test")
    await eventually(lambda: not watch._tasks)
