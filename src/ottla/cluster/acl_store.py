"""The ACLs of the cluster: in the coordination tree, and in this broker's authorizer.

Every broker writes and reads the tree itself, as Kafka's AclAuthorizer does, and watches the nodes
of changes; what it wrote counts here at once. After a new session everything is read again, and so
it is where changes have gone before they were read.

One at a time reads or writes a pattern and hands it to the authorizer, as under AclAuthorizer's
lock: else what was written first could replace what another broker wrote since. Kafka announces a
change after it; here both are one transaction, because a change that nobody announces would count
on one broker alone, and trying again would find nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ottla.coordination.tree import (
    BadVersionError,
    Coordination,
    CoordinationError,
    Create,
    Delete,
    Event,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.background import Background
from ottla.runtime.slices import Slices
from ottla.security import acl_tree
from ottla.security.acl import Acl, Entry, Pattern, PatternType
from ottla.security.acl_filter import AclFilter
from ottla.security.acl_tree import AclNodeError
from ottla.security.authorizer import Authorizer

logger = logging.getLogger("ottla.authorizer")

RETRY_MS: Final = 100
READ_AGAIN_MS: Final = 30_000
"""A change that no watch has announced is read then."""
MAX_TRIES: Final = 20
"""Of one change while others change the same node."""
MAX_CHANGES: Final = 200
"""Nodes of changes that are kept."""
MAX_NODE_BYTES: Final = 900_000
"""ZooKeeper takes a node of 1 MB."""
FIRST_READ_WITHIN_MS: Final = 30_000


class AclStore:
    """Keeps an authorizer like the tree."""

    def __init__(self, authorizer: Authorizer, session: Callable[[], Coordination]) -> None:
        self._authorizer = authorizer
        self._session = session
        self._changed = asyncio.Event()
        self._has_read = asyncio.Event()
        self._known: set[str] = set()
        """The nodes of changes that were read."""
        self._lock = asyncio.Lock()
        """Held from reading or writing a pattern until the authorizer has it."""
        self._background = Background(logger, "reading the ACLs")

    async def start(self) -> None:
        """Reads all ACLs, and goes on to follow their changes. Raises CoordinationError."""
        self._background.keep(self._run)
        try:
            async with asyncio.timeout(FIRST_READ_WITHIN_MS / 1000):
                await self._has_read.wait()
        except TimeoutError:
            raise CoordinationError("the ACLs cannot be read") from None

    async def close(self) -> None:
        await self._background.close()

    async def _run(self) -> None:
        session: Coordination | None = None
        while True:
            try:
                now = self._session()
                self._changed.clear()
                if now is not session or not await self._read_changes(now):
                    async with self._lock:
                        await self._read_all(now)
                    session = now
                self._has_read.set()
            except CoordinationError as error:
                logger.info("cannot read the ACLs now: %r", error)
                session = None
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(READ_AGAIN_MS / 1000):
                    await self._changed.wait()

    def _notify(self, event: Event) -> None:
        self._changed.set()

    async def _read_all(self, session: Coordination) -> None:
        for path in acl_tree.LASTING_NODES:
            if await session.exists(path) is None:
                with suppress(NodeExistsError):  # another broker starts at the same time
                    await session.create(path)
        known = set()
        for root in acl_tree.CHANGES.values():
            children = await session.children(root, self._notify)
            known |= {f"{root}/{name}" for name in children}
        found: dict[Pattern, bytes] = {}
        for root in acl_tree.ROOTS.values():
            for path, node in (await session.read_tree(root)).items():
                pattern = acl_tree.pattern_at(path)
                if pattern is not None:
                    found[pattern] = node.data
        self._known = known
        slices = Slices()
        for pattern in {acl.pattern for acl in self._authorizer.acls()} - found.keys():
            await slices.count()
            self._authorizer.set_entries(pattern, ())
        for pattern, data in found.items():
            await slices.count()
            self._set(pattern, data)

    async def _read_changes(self, session: Coordination) -> bool:
        """Reads what has changed; False if some changes have gone before they were read."""
        known: set[str] = set()
        for kind, root in acl_tree.CHANGES.items():
            there = {f"{root}/{name}" for name in await session.children(root, self._notify)}
            if _has_gap(self._known, there, root):
                return False
            for path in sorted(there - self._known):
                async with self._lock:
                    await self._read_change(session, kind, path)
            known |= there
        self._known = known
        return True

    async def _read_change(self, session: Coordination, kind: PatternType, path: str) -> None:
        try:
            node = await session.get(path)
        except NoNodeError:
            return
        try:
            pattern = acl_tree.read_change(kind, node.data)
        except AclNodeError as error:
            logger.error("%s: %s", path, error)
            return
        if "/" in pattern.name:
            return
        found = await session.exists(acl_tree.path_of(pattern))
        self._set(pattern, b"" if found is None else found.data)

    def _set(self, pattern: Pattern, data: bytes) -> None:
        """A node that cannot be read leaves what was known: a denial must not get lost."""
        try:
            self._authorizer.set_entries(pattern, acl_tree.read_entries(data))
        except AclNodeError as error:
            logger.error("%s: %s; its last ACLs count", acl_tree.path_of(pattern), error)

    def acls(self) -> list[Acl]:
        """All that this broker knows."""
        return list(self._authorizer.acls())

    async def add(self, acls: Sequence[Acl]) -> dict[Pattern, ApiError]:
        """Adds them; those that exist stay. Returns the patterns that failed."""
        wanted: dict[Pattern, dict[Entry, None]] = {}
        for acl in acls:
            wanted.setdefault(acl.pattern, {})[acl.entry] = None
        return await self._change_all(
            {pattern: partial(_with, entries) for pattern, entries in wanted.items()}
        )

    async def remove(self, filters: Sequence[AclFilter]) -> tuple[list[list[Acl]], list[ApiError]]:
        """Removes what the filters match. Returns what each matched, and the failures."""
        matched: list[list[Acl]] = []
        slices = Slices()
        gone: dict[Pattern, set[Entry]] = {}
        all_acls = self.acls()
        for each in filters:
            found = []
            for acl in all_acls:
                await slices.count()
                if each.matches(acl):
                    found.append(acl)
                    gone.setdefault(acl.pattern, set()).add(acl.entry)
            matched.append(found)
        failed = await self._change_all(
            {pattern: partial(_without, entries) for pattern, entries in gone.items()}
        )
        kept = [[acl for acl in found if acl.pattern not in failed] for found in matched]
        return kept, list(failed.values())

    async def _change_all(
        self, changes: Mapping[Pattern, Callable[[list[Entry]], list[Entry]]]
    ) -> dict[Pattern, ApiError]:
        failed: dict[Pattern, ApiError] = {}
        for pattern, change in changes.items():
            try:
                await self._change(pattern, change)
            except ApiError as error:
                failed[pattern] = error
            except CoordinationError as error:
                message = f"The coordination tree: {error!r}."
                failed[pattern] = ApiError(ErrorCode.request_timed_out, message)
        return failed

    async def _change(self, pattern: Pattern, change: Callable[[list[Entry]], list[Entry]]) -> None:
        session, path = self._session(), acl_tree.path_of(pattern)
        root = acl_tree.CHANGES[pattern.type]
        for _ in range(MAX_TRIES):
            async with self._lock:
                node = await session.exists(path)
                try:
                    there = [] if node is None else acl_tree.read_entries(node.data)
                except AclNodeError as error:
                    raise ApiError(ErrorCode.unknown_server_error, f"{path}: {error}") from None
                entries = change(there)
                data = acl_tree.write_entries(entries)
                if len(data) > MAX_NODE_BYTES:
                    message = f"{pattern} would have {len(data):,} bytes of ACLs."
                    raise ApiError(ErrorCode.invalid_request, message)
                if entries == there:
                    return
                write: Operation
                if node is None:
                    write = Create(path, data)
                elif entries:
                    write = SetData(path, data, node.version)
                else:
                    write = Delete(path, node.version)
                names = [name for name in await session.children(root) if _number(name) is not None]
                last = max(_numbers(names, root), default=-1)
                announcement = f"{root}/{acl_tree.CHANGE}{last + 1:010}"
                told = Create(announcement, acl_tree.write_change(pattern))
                try:
                    await session.multi((write, told))
                except (BadVersionError, NodeExistsError, NoNodeError):
                    continue  # another broker was faster
                self._authorizer.set_entries(pattern, entries)
            for name in _oldest(names):
                with suppress(NoNodeError):  # another broker was faster
                    await session.delete(f"{root}/{name}")
            return
        message = f"Others change the ACLs of {pattern} at the same time; try again."
        raise ApiError(ErrorCode.concurrent_transactions, message)


def _has_gap(known: Iterable[str], there: Iterable[str], root: str) -> bool:
    """Whether changes of this root came and went since the known ones: they are numbered."""
    last = max(_numbers(known, root), default=-1)
    new = [number for number in _numbers(there, root) if number > last]
    return bool(new) and len(new) != max(new) - last


def _numbers(paths: Iterable[str], root: str) -> list[int]:
    numbers = [_number(path.removeprefix(f"{root}/")) for path in paths]
    return [number for number in numbers if number is not None]


def _with(more: Iterable[Entry], there: list[Entry]) -> list[Entry]:
    return [*dict.fromkeys([*there, *more])]


def _without(gone: set[Entry], there: list[Entry]) -> list[Entry]:
    return [entry for entry in there if entry not in gone]


def _number(name: str) -> int | None:
    digits = name.removeprefix(acl_tree.CHANGE)
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


def _oldest(names: Iterable[str]) -> list[str]:
    in_order = sorted(names)
    return in_order[: max(0, len(in_order) - MAX_CHANGES)]
