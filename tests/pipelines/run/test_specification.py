"""Which arguments are refused before anything is looked up; the others need Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from pyspark.sql import DataFrame

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.specification import Specification, asked

FRAME: Any = create_autospec(DataFrame, instance=True)


def specify(**changes: Any) -> Specification:
    given = {"frame": FRAME, "target": "/lake/t", "checkpoint": "/lake/cp"} | changes
    return Specification(**given)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"frame": [1]}, "to_delta takes a DataFrame, not list"),
        ({"frame": [1], "caller": "to_topic"}, "to_topic takes a DataFrame, not list"),
        ({"checkpoint": 7}, "needs a checkpoint: a folder"),
        ({"trigger": {"once": True, "availableNow": True}}, "write one of {'availableNow': True}"),
        ({"trigger": {"continuous": "1 second"}}, "write one of {'availableNow': True}"),
        ({"max_rejects": True}, "max_rejects=True: write a number of rows, or None"),
        ({"max_rejects": 1.5}, "max_rejects=1.5: write a number of rows, or None"),
        ({"group": ""}, "group='': write the name of a group"),
        ({"group": 7}, "group=7: write the name of a group"),
        ({"dead_letters": ""}, "dead_letters='' is no topic's name"),
        ({"dead_letters": "a b"}, "dead_letters='a b' is no topic's name"),
        ({"dead_letters": "a" * 250}, "is no topic's name"),
        ({"dead_letters": 7}, "dead_letters=7 is no topic's name"),
        ({"dead_letters": ".."}, "dead_letters='..' is no topic's name"),
        ({"schema_changes": "drop"}, "schema_changes='drop': write 'refuse' or 'add'"),
        ({"on_lost": ""}, "on_lost='': write 'stop' or 'skip'"),
        ({"on_rejects": "skip"}, "on_rejects='skip': write 'stop' or 'continue'"),
        ({"keys": ["id", ""]}, "keys=['id', '']: write names of columns, such as ['id']"),
        ({"keys": 7}, "keys=7: write names of columns"),
        ({"keys": [7]}, "keys=[7]: write names of columns"),
        ({"partition_by": 7}, "partition_by=7: write names of columns, such as ['day']"),
        ({"partition_by": ""}, "partition_by='': write names of columns"),
        ({"partition_by": ["day", "Day"]}, "partition_by=['day', 'Day'] names a column twice"),
        ({"keys": "id", "deletes": "keep"}, "deletes='keep': write 'remove' or 'mark'"),
        ({"order_by": "at"}, "order_by, history and deletes are for tables with keys"),
        ({"deletes": "mark"}, "order_by, history and deletes are for tables with keys"),
        ({"history": True}, "order_by, history and deletes are for tables with keys"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError) as refused:
        specify(**changes)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint": Path("cp")},
        {"trigger": {}},
        {"trigger": {"processingTime": "10 seconds"}},
        {"max_rejects": 0},
        {"dead_letters": "a" * 249},
        {"dead_letters": "letters.of_flights-1"},
        {"keys": ("id", "day"), "order_by": "at", "history": True, "deletes": "mark"},
    ],
)
def test_allowed(changes: dict[str, Any]) -> None:
    specification = specify(**changes)
    for name, value in changes.items():
        assert getattr(specification, name) == value


@pytest.mark.parametrize(
    ("trigger", "ends"),
    [
        (None, False),
        ({}, False),
        ({"processingTime": "1 second"}, False),
        ({"availableNow": True}, True),
        ({"once": True}, True),
    ],
)
def test_which_queries_end_by_themselves(trigger: Any, ends: bool) -> None:
    assert specify(trigger=trigger).ends_by_itself is ends


def test_one_column_or_several() -> None:
    one = specify(keys="id", partition_by="day")
    assert (one.key_columns, one.partition_columns) == (("id",), ("day",))
    several = specify(keys=["id", "day"], partition_by=["day", "hour"])
    assert several.key_columns == ("id", "day")
    assert several.partition_columns == ("day", "hour")
    none = specify()
    assert (none.key_columns, none.partition_columns, none.keyed_table) == ((), (), None)


def test_the_arguments_of_a_call_have_their_names() -> None:
    given = {"df": FRAME, "target": "/lake/t", "checkpoint": "/lake/cp", "keys": "id", "url": "x"}

    found = asked("to_postgresql", given)

    assert (found.frame, found.target, found.keys) == (FRAME, "/lake/t", "id")
    assert (found.caller, found.rebuild) == ("to_postgresql", None)


def test_a_function_makes_the_frame_again() -> None:
    def build() -> DataFrame:
        frame: DataFrame = FRAME
        return frame

    found = asked("to_delta", {"df": build, "target": "/lake/t", "checkpoint": "/lake/cp"})

    assert (found.frame, found.rebuild) == (FRAME, build)
