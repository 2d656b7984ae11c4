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
from pathlib import Path
from typing import Final

import pytest

MAX_SECONDS: Final = 2.0
FILE: Final = Path(__file__).with_name("slow.txt")

BREADTH: Final = frozenset[str]()
"""Slow, but the only ones of their kind that `make test` would have."""


def slow_names() -> frozenset[str]:
    return frozenset(FILE.read_text().split())


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
