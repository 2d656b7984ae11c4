"""Matches the regular expressions of consumer groups against the cluster's topics, in a thread.

RE2 takes time linear in the names, but there may be 100,000 of them. A group's expressions are
matched once at a time; what a heartbeat asks for meanwhile waits for a later heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from ottla.coordinator.consumer_decisions import ConsumerDecisions
from ottla.coordinator.long_decisions import RunLong
from ottla.groups.consumer.topics import Topics
from ottla.protocol.errors import ApiError
from ottla.protocol.regular_expression import compile_expression
from ottla.runtime.background import Background

logger = logging.getLogger("ottla.groups")

RETRY_S: Final = 10.0
"""After what an expression matches could not be stored."""
MayDescribe: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Those of these topics that the client may know of."""


async def may_describe_all(names: Sequence[str]) -> Sequence[str]:
    """Without an authorizer."""
    return names


class RegexMatching:
    """For the event loop's thread only."""

    def __init__(
        self,
        decisions: ConsumerDecisions,
        topics: Callable[[], Topics],
        run_long: RunLong,
        background: Background,
        retry_s: float = RETRY_S,
    ) -> None:
        self._retry_s = retry_s
        self._decisions = decisions
        self._topics = topics
        self._run_long = run_long
        self._background = background
        self._under_way: set[str] = set()
        """Groups."""

    def begin(
        self, index: int, group: str, expressions: Sequence[str], may_describe: MayDescribe
    ) -> None:
        """Matches the expressions of a group in this partition of `__consumer_offsets`, unless that
        is under way.
        """
        if group not in self._under_way:
            self._under_way.add(group)
            self._background.spawn(self._match(index, group, expressions, may_describe))

    async def _match(
        self, index: int, group: str, expressions: Sequence[str], may_describe: MayDescribe
    ) -> None:
        try:
            topics = self._topics()
            work = partial(matches, expressions, list(topics.by_name))
            matched = await self._run_long(work)
            visible = {
                expression: tuple(await may_describe(found))
                for expression, found in matched.items()
            }
            await self._decisions.regexes_resolved(index, group, visible, topics.version)
        except ApiError as error:
            logger.info("group %s: its regular expressions are not stored: %s", group, error)
            # Heartbeats ask for it again and again, and what they match may be too large to store.
            await asyncio.sleep(self._retry_s)
        finally:
            self._under_way.discard(group)


def matches(expressions: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """The names, sorted, that each expression matches as a whole; they are valid ones."""
    found = {}
    for expression in expressions:
        compiled = compile_expression(expression)
        found[expression] = sorted(name for name in names if compiled.fullmatch(name))
    return found
