"""The choice of the tests that `make test` leaves out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.slow import (
    BREADTH,
    FILE,
    MAX_SECONDS,
    chosen,
    pytest_ignore_collect,
    seconds_of,
    slow_names,
)

REPORT = """<testsuites><testsuite>
<testcase classname="tests.log.test_log" name="test_a[1]" time="0.1"/>
<testcase classname="tests.log.test_log" name="test_a[2]" time="9.5"/>
<testcase classname="tests.log.test_log" name="test_b" time="0.5"/>
<testcase classname="tests.test_all" name="test_c" time="7"/>
</testsuite></testsuites>"""


def test_the_longest_case_of_a_test_counts(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert seconds_of([tmp_path / "report.xml"]) == {
        "tests/log/test_log.py::test_a": 9.5,
        "tests/log/test_log.py::test_b": 0.5,
        "tests/test_all.py::test_c": 7.0,
    }


def test_a_file_with_slow_tests_only_is_named_as_a_whole() -> None:
    slow, quick = MAX_SECONDS + 1, MAX_SECONDS - 1
    seconds = {"a.py::x": slow, "a.py::y": slow, "b.py::x": slow, "b.py::y": quick}
    assert chosen(seconds) == ["a.py", "b.py::x"]


def test_each_name_is_that_of_a_test() -> None:
    """A test that was renamed would come back to `make test` unseen."""
    folder = Path(__file__).parents[1]
    for name in slow_names() | BREADTH:
        path, _, test = name.partition("::")
        assert (
            f"def {test}(" in (folder / path).read_text() if test else (folder / path).exists()
        ), name


@pytest.mark.parametrize(
    ("chosen_by", "path", "is_left_out"),
    [
        ("slow and not full", "tests/demo/test_run.py", None),  # one of its tests is slow
        ("slow and not full", "tests/mirroring/test_mirror.py", None),
        ("slow and not full", "tests/test_slow.py", True),
        ("slow and not full", "tests/conftest.py", None),
        ("slow and not full", "tests", None),
        ("not slow and not full", "tests/test_slow.py", None),
        ("", "tests/test_slow.py", None),
    ],
)
def test_files_without_slow_tests_are_not_imported_for_these(
    chosen_by: str, path: str, is_left_out: bool | None
) -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=chosen_by))
    assert pytest_ignore_collect(FILE.parents[1] / path, config) is is_left_out
