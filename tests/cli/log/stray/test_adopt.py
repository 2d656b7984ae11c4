"""`ottla log stray list` and `adopt`, as typed, on the folder of a real node."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.cli.log.stray.stray_node import Typed, set_aside, strays

from ottla.log.partition_metadata import read_topic_id


async def test_a_stray_folder_is_listed_and_put_back(
    start_node: Any, eventually: Any, typed: Typed
) -> None:
    node_call = await set_aside(start_node, eventually)
    data = node_call.node.config.data_folder
    (folder,) = strays(data)
    code, out, _ = await typed("list", data, "--json")
    (shown,) = json.loads(out)
    assert code == 0
    assert shown.pop("set_aside_ms") > 1_600_000_000_000
    assert shown.pop("bytes") > 0
    assert "no topic has it" not in shown["why"]
    assert shown.pop("why").startswith("its topic id is AAAAAAAAAAAAAAAAAAAATQ, topic t has ")
    assert shown == {
        "topic": "t",
        "partition": 0,
        "topic_id": "AAAAAAAAAAAAAAAAAAAATQ",
        "start_offset": 1,
        "end_offset": 3,
        "folder": str(folder),
    }
    _, table, _ = await typed("list", data)
    row = table.splitlines()[1].split()
    assert row[:4] == ["t", "0", "AAAAAAAAAAAAAAAAAAAATQ", "1-2"]
    assert row[-1] == str(folder)

    code, _, err = await typed("adopt", folder)
    assert code == 1
    assert "is in use by another broker: stop it" in err
    before = node_call.node.image.topics["t"]
    await node_call.node.close()
    code, out, _ = await typed("adopt", folder)
    assert (code, out) == (0, "t-0 has its records again. Start the broker.\n")
    again = await start_node()
    log = again.node.partitions.find("t", 0).log
    assert (log.start_offset, log.end_offset) == (1, 3)
    after = again.node.image.topics["t"]
    assert after.topic_id == before.topic_id == read_topic_id(str(data / "t-0"))
    assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch
    assert {each.name for each in (data / "t-0").iterdir()} >= {f"{0:020d}.log"}
    assert not (data / "t-0" / "stray.json").exists()
    await again.produce("t", again.batch(b"b"))
    assert again.node.partitions.find("t", 0).high_watermark == 4
    code, _, err = await typed("list", data)
    assert (code, err) == (0, f"No stray folders in {data}.\n")


async def test_records_are_not_overwritten(start_node: Any, eventually: Any, typed: Typed) -> None:
    node_call = await set_aside(start_node, eventually)
    data = node_call.node.config.data_folder
    (folder,) = strays(data)
    await node_call.produce("t", node_call.batch(b"new"))
    await node_call.node.close()
    code, _, err = await typed("adopt", folder)
    assert code == 1
    assert f"{data}/t-0 has records, which the stray folder's would overwrite." in err
    assert strays(data) == [folder]


@pytest.mark.parametrize("partitions", [None, 5])
async def test_a_topic_that_the_store_has_lost_is_created_again(
    start_node: Any, eventually: Any, typed: Typed, partitions: int | None
) -> None:
    first = await start_node()
    await first.create("t", 3)
    topic_id = first.topic_id("t")
    for index in (0, 2):
        await first.produce("t", first.batch(b"a", b"b"), index=index)
    data = first.node.config.data_folder
    await first.node.close()
    with sqlite3.connect(data / "coordination.sqlite") as database:
        paths = "path = '/brokers/topics/t' OR path > '/brokers/topics/t/' AND path < '/brokers/u'"
        gone = list(database.execute(f"SELECT path FROM node WHERE {paths}"))
    assert len(gone) == 8
    lose(data, [path for (path,) in gone])
    second = await start_node()
    assert "t" not in second.node.image.topics
    await eventually(lambda: len(strays(data)) == 2)
    await second.node.close()
    zero, two = strays(data)
    asked = [] if partitions is None else ["--partitions", partitions]
    if partitions is not None:
        code, _, err = await typed("adopt", zero, "--partitions", 2)
        assert code == 1
        assert "topic t has at least 3 partitions, as its folders show." in err
    code, out, _ = await typed("adopt", zero, *asked)
    count = partitions or 3
    assert code == 0
    assert out.splitlines()[0] == f"Created topic t with {count} partitions and default settings."
    code, out, _ = await typed("adopt", two)
    assert (code, out) == (0, "t-2 has its records again. Start the broker.\n")
    again = await start_node()
    found = again.node.partitions.of_topic("t")
    assert [each.log.end_offset for each in found] == [2, 0, 2, 0, 0][:count]
    assert again.topic_id("t") == topic_id
    for index in range(count):
        await again.produce("t", again.batch(b"c"), index=index)


def lose(data: Path, paths: list[str]) -> None:
    """Deletes these nodes from the stopped node's store."""
    from ottla.coordination.embedded_store import EmbeddedStore
    from ottla.coordination.tree import Delete

    store = EmbeddedStore(data)
    store.multi([Delete(path) for path in sorted(paths, reverse=True)], 1)
    store.close()


async def test_other_folders_are_refused(start_node: Any, typed: Typed, tmp_path: Path) -> None:
    node_call = await start_node()
    await node_call.create("t")
    await node_call.produce("t", node_call.batch(b"a"))
    data = node_call.node.config.data_folder
    await node_call.node.close()
    for command in ("adopt", "delete"):
        code, _, err = await typed(command, data / "t-0")
        assert code == 1
        assert "t-0 is not a stray folder." in err
        code, _, err = await typed(command, data / "t-1")
        assert code == 1
        assert "t-1 does not exist." in err
    code, _, err = await typed("list", data / "none")
    assert code == 1
    assert "cannot read" in err
    outside = tmp_path / f"t-0.{'0' * 32}-stray"
    outside.mkdir()
    code, _, err = await typed("adopt", outside)
    assert code == 1
    assert "is not a data folder: it has no meta.properties." in err
    inside = data / outside.name
    outside.rename(inside)
    (data / "coordination.sqlite").unlink()
    code, _, err = await typed("adopt", inside)
    assert code == 1
    assert "is the folder of a broker in a cluster." in err
    assert "Add --zookeeper" in err
