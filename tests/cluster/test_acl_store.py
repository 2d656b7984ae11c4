"""ACLs in the tree and in authorizers: what one broker changes counts on all, the newest last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ottla.cluster.acl_store import MAX_CHANGES, AclStore
from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.tree import ConnectionLostError, Operation
from ottla.protocol.access import Operation as AclOperation
from ottla.protocol.access import Resource
from ottla.protocol.errors import ErrorCode
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.acl_filter import ANY, AclFilter
from ottla.security.authorizer import Authorizer

WAIT_S = 10
EVERYTHING = AclFilter(ANY, None, ANY, None, None, ANY, ANY)


def acl(topic: str, principal: str = "User:alice") -> Acl:
    pattern = Pattern(Resource.TOPIC, topic, PatternType.LITERAL)
    return Acl(pattern, Entry(principal, "*", AclOperation.READ, Permission.ALLOW))


class Session:
    """A session of the tree whose calls a test can hold up."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.may_list = asyncio.Event()
        self.may_list.set()
        self.after_multi: Callable[[], Any] | None = None
        self.loses = 0
        """So many calls of `multi` find no connection."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def children(self, path: str, watch: Any = None) -> Any:
        await self.may_list.wait()
        return await self._inner.children(path, watch)

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self.loses:
            self.loses -= 1
            raise ConnectionLostError("gone")
        await self._inner.multi(operations)
        if self.after_multi is not None:
            after, self.after_multi = self.after_multi, None
            await after()


@asynccontextmanager
async def stores() -> AsyncIterator[list[tuple[AclStore, Session]]]:
    """Those of two brokers."""
    tree = EmbeddedTree(None)
    made = []
    for _ in range(2):
        session = Session(await tree.connect())
        store = AclStore(Authorizer(), lambda session=session: session)  # type: ignore[misc]
        await store.start()
        made.append((store, session))
    try:
        yield made
    finally:
        for store, session in made:
            await store.close()
            await session.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_what_one_broker_changes_counts_on_both() -> None:
    async with stores() as ((one, _), (other, _)):
        assert await one.add([acl("a"), acl("b")]) == {}
        await until(lambda: set(other.acls()) == {acl("a"), acl("b")})
        assert await other.remove([EVERYTHING]) == ([[acl("a"), acl("b")]], [])
        await until(lambda: one.acls() == [])


async def test_a_change_and_its_announcement_are_one() -> None:
    async with stores() as ((one, session), (other, _)):
        session.loses = 1
        failed = await one.add([acl("a")])
        assert [error.code for error in failed.values()] == [ErrorCode.request_timed_out]
        assert one.acls() == []
        assert await one.add([acl("a")]) == {}
        await until(lambda: other.acls() == [acl("a")])


async def test_what_another_broker_wrote_later_is_what_counts() -> None:
    async with stores() as ((one, session), (other, _)):

        async def change_too() -> None:
            assert await other.remove([EVERYTHING]) == ([[acl("a")]], [])
            # Time in which this broker would read that, if it did not wait for its own change.
            await asyncio.sleep(0.2)

        async def know_and_change() -> None:
            await until(lambda: other.acls() == [acl("a")])
            await change_too()

        session.after_multi = know_and_change
        assert await one.add([acl("a")]) == {}
        await until(lambda: one.acls() == [])
        assert other.acls() == []


async def test_changes_that_have_gone_before_they_were_read_are_not_missed() -> None:
    async with stores() as ((one, _), (slow, session)):
        session.may_list.clear()
        wanted = [acl(f"t{number}") for number in range(MAX_CHANGES + 10)]
        assert await one.add(wanted) == {}
        session.may_list.set()
        await until(lambda: set(slow.acls()) == set(wanted))
