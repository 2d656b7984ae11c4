"""Which tests `make test` leaves to `make test-slow`: a pytest plugin, and a command.

`make test` is run ten times a day, so it is whole in breadth and short: each test that takes more
than MAX_SECONDS has the mark `slow`, but those in BREADTH. The names lie in one file beside this
one, as `path` or `path::test`, so that one command can write it again:

    make test ARGS=--junitxml=a.xml; make test-slow ARGS=--junitxml=b.xml
    python -m tests.slow a.xml b.xml
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

MAX_SECONDS: Final = 2.5
FILE: Final = Path(__file__).with_name("slow.txt")

BREADTH: Final = frozenset(
    {
        "tests/pipelines/file/test_build.py::test_a_topic_as_the_sink",
        "tests/pipelines/rejects/test_rejects.py"
        "::test_the_journey_of_a_rejected_message_and_of_one_that_is_a_row",
        "tests/pipelines/run/test_start.py::test_rows_arrive_once_with_their_place_over_restarts",
        "tests/pipelines/sinks/iceberg/test_to_iceberg.py"
        "::test_another_job_may_write_between_two_batches",
        "tests/pipelines/sinks/topic/test_to_topic.py"
        "::test_rows_arrive_once_also_when_a_batch_is_tried_again",
        "tests/pipelines/sinks/delta/test_merge.py"
        "::test_a_history_in_order_is_merged_by_the_shorter_statement",
        "tests/pipelines/sinks/delta/test_merge.py"
        "::test_the_last_offset_wins_a_tombstone_deletes_and_a_batch_comes_once",
        "tests/system/test_bad_input.py::test_fuzz_of_every_request_in_every_version",
        "tests/system/test_cluster_groups.py::test_a_group_goes_on_when_its_coordinator_dies",
        "tests/system/test_cluster_journey_truth.py::test_what_real_brokers_say_is_true",
        "tests/system/test_cluster_start.py"
        "::test_a_cluster_is_started_grows_is_drained_stopped_and_goes_on",
        "tests/system/test_cluster_unclean.py"
        "::test_an_unclean_election_says_which_offsets_it_dropped",
    }
)
"""Slow, but the only ones of their kind that `make test` would have: a pipeline for each sink, a
table with keys, rejected rows, every request, a cluster with a coordinator that dies, with an
unclean election and with journeys.
"""


def slow_names() -> frozenset[str]:
    return frozenset(FILE.read_text().split())


@cache
def slow_files() -> frozenset[Path]:
    return frozenset(FILE.parents[1] / name.partition("::")[0] for name in slow_names())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-slow` imports no file without a slow test: seven of eight have none."""
    is_left_out = (
        config.option.markexpr.startswith("slow")
        and collection_path.match("test_*.py")
        and collection_path not in slow_files()
    )
    return True if is_left_out else None  # the other plugins decide


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = slow_names()
    for item in items:
        path, _, test = item.nodeid.partition("::")
        if path in slow or f"{path}::{test.partition('[')[0]}" in slow:
            item.add_marker(pytest.mark.slow)


def seconds_of(reports: Iterable[Path]) -> dict[str, float]:
    """By `path::test`, the longest of its cases. `reports` are JUnit's XML from pytest."""
    longest: dict[str, float] = defaultdict(float)
    for report in reports:
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            path = case.attrib["classname"].replace(".", "/") + ".py"
            name = f"{path}::{case.attrib['name'].partition('[')[0]}"
            longest[name] = max(longest[name], float(case.attrib["time"]))
    return longest


def chosen(seconds: Mapping[str, float]) -> list[str]:
    """The names for FILE: a path alone if all tests of the file are slow."""
    by_path: dict[str, list[str]] = defaultdict(list)
    for name in seconds:
        by_path[name.partition("::")[0]].append(name)
    names: list[str] = []
    for path, tests in by_path.items():
        slow = [name for name in tests if seconds[name] > MAX_SECONDS and name not in BREADTH]
        names += [path] if len(slow) == len(tests) else slow
    return sorted(names)


def main() -> None:
    names = chosen(seconds_of(map(Path, sys.argv[1:])))
    FILE.write_text("".join(f"{name}\n" for name in names))
    print(f"{len(names)} names in {FILE}")


if __name__ == "__main__":
    main()
