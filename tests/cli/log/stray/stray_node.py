"""A node that has set a folder aside, and `ottla log stray`, as typed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ottla.cli.app import carry_out
from ottla.log.partition_metadata import make_folder

DELETE_RECORDS = 21


class Typed:
    """Types `ottla log stray ...` beside the loop, because `adopt` has a loop of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    async def __call__(self, *words: object) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = await asyncio.to_thread(carry_out, ["log", "stray", *map(str, words)])
        said = self._capsys.readouterr()
        return code, said.out, said.err


def strays(data: Path) -> list[Path]:
    return sorted(data.glob("*-stray"))


async def set_aside(start_node: Any, eventually: Any, topic_id: UUID | None = None) -> Any:
    """A running node whose topic t, with the offsets 1 to 2, has another id than its folder."""
    first = await start_node()
    await first.create("t")
    for _ in range(3):
        await first.produce("t", first.batch(b"a"))
    build = first.request(DELETE_RECORDS, 2)
    before = build.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = build.DeleteRecordsTopic(name="t", partitions=(before,))
    await first.ask(build.DeleteRecordsRequest(topics=(topic,), timeout=1000))
    data = first.node.config.data_folder
    await first.node.close()
    make_folder(str(data / "t-0"), topic_id or UUID(int=77))
    second = await start_node()
    await eventually(lambda: strays(data))
    return second
