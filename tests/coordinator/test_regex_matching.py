from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from ottla.coordinator.regex_matching import RegexMatching, matches, may_describe_all
from ottla.groups.consumer.topics import Topic, Topics
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.background import Background

NAMES = ("b2", "a1", "a2", "xa1")


def test_names_match_as_a_whole_and_are_sorted() -> None:
    assert matches(["a.*", "b", "(a|b)2"], NAMES) == {
        "a.*": ["a1", "a2"],
        "b": [],
        "(a|b)2": ["a2", "b2"],
    }


def test_a_pattern_that_would_backtrack_takes_no_time() -> None:
    assert matches(["(a+)+b"], ["a" * 249]) == {"(a+)+b": []}


class Bench:
    def __init__(self, retry_s: float) -> None:
        topics = Topics(7, {name: Topic(UUID(int=1), 1) for name in NAMES})
        background = Background(logging.getLogger("tests"), "tests")
        self.stored: list[Any] = []
        self.error: ApiError | None = None
        self.gate = asyncio.Event()
        self.matching = RegexMatching(self, lambda: topics, self.run_long, background, retry_s)  # type: ignore[arg-type]

    async def run_long(self, work: Callable[[], Any]) -> Any:
        await self.gate.wait()
        return work()

    async def regexes_resolved(self, *result: Any) -> None:
        if self.error is not None:
            raise self.error
        self.stored.append(result)

    async def settle(self) -> None:
        self.gate.set()
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
async def bench() -> Bench:
    return Bench(retry_s=0)


async def test_a_group_s_expressions_are_matched_once_at_a_time(bench: Bench) -> None:
    for _ in range(3):
        bench.matching.begin(0, "g", ("a.*",), may_describe_all)
    bench.matching.begin(1, "h", ("b.*",), may_describe_all)
    await bench.settle()
    assert bench.stored == [
        (0, "g", {"a.*": ("a1", "a2")}, 7),
        (1, "h", {"b.*": ("b2",)}, 7),
    ]
    bench.matching.begin(0, "g", ("b.*",), may_describe_all)
    await bench.settle()
    assert bench.stored[-1] == (0, "g", {"b.*": ("b2",)}, 7)


async def test_topics_that_the_client_may_not_know_of_are_left_out(bench: Bench) -> None:
    async def may_describe(names: Sequence[str]) -> list[str]:
        return [name for name in names if name != "a1"]

    bench.matching.begin(0, "g", ("a.*",), may_describe)
    await bench.settle()
    assert bench.stored == [(0, "g", {"a.*": ("a2",)}, 7)]


async def test_a_refusal_is_no_end(bench: Bench) -> None:
    bench.error = ApiError(ErrorCode.not_coordinator)
    bench.matching.begin(0, "g", ("a.*",), may_describe_all)
    await bench.settle()
    bench.error = None
    bench.matching.begin(0, "g", ("a.*",), may_describe_all)
    await bench.settle()
    assert len(bench.stored) == 1


async def test_after_a_refusal_it_is_not_tried_at_once() -> None:
    bench = Bench(retry_s=3_600)
    bench.error = ApiError(ErrorCode.unknown_server_error)
    bench.matching.begin(0, "g", ("a.*",), may_describe_all)
    await bench.settle()
    bench.error = None
    bench.matching.begin(0, "g", ("a.*",), may_describe_all)
    await bench.settle()
    assert bench.stored == []
