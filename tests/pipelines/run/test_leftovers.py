"""What a query that has ended leaves in its process: no open file, no listener."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import to_delta, topic

pytestmark = pytest.mark.spark

WITHIN_S = 20
SETTLED_FILES = 4
"""Connections of Py4J, which it opens for threads and keeps for the next one."""


def run_once(spark: Any, bootstrap: str, name: str, folder: Path) -> None:
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    query = to_delta(
        frame.select("value.*", "partition", "offset"),
        folder / "table",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        group=f"{name}-delta",
    )
    query.awaitTermination()


def open_files() -> dict[str, str]:
    gc.collect()
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # the folder itself, as it was listed
    return found


def test_a_query_that_has_ended_leaves_no_open_file_and_no_listener(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the system does not list a process's open files")
    name = new_topic(1)
    listeners = spark._jsparkSession.streams().listListeners
    produce(name, [("k", json.dumps({"id": 0}))])
    run_once(spark, bootstrap, name, tmp_path)  # what the process opens once and keeps
    before, known = open_files(), len(listeners())
    for number in range(1, 4):
        produce(name, [("k", json.dumps({"id": number}))])
        run_once(spark, bootstrap, name, tmp_path)
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        after, listening = open_files(), len(listeners())
        if len(after) <= len(before) + SETTLED_FILES and listening <= known:
            break
        time.sleep(0.2)
    new = sorted(after[number] for number in set(after) - set(before))
    assert (listening <= known, len(after) <= len(before) + SETTLED_FILES) == (True, True), (
        f"{known} listeners, then {listening}; {len(before)} open files, then {len(after)}: {new}"
    )
