"""The changes of the demo's tables, and their batch computation."""

import json
from collections import Counter
from pathlib import Path

import pytest
from demo.changes import COLUMNS, FLIGHTS, KEYS, TOPICS, WEATHER, Change, last_rows, read_changes
from demo.processes import pipeline_environment
from demo.tables import TABLES_FILE, told

from ottla.pipelines.file.read import read_file
from ottla.pipelines.sinks.delta import DeltaSpec
from ottla.pipelines.sinks.postgresql import DatabaseSpec


def test_the_last_change_of_a_key_by_its_timestamp_is_its_row() -> None:
    changes = [
        Change(FLIGHTS, b'{"flight":1}', b'{"dest":"IAH"}', 20),
        Change(FLIGHTS, b'{"flight":1}', b'{"dest":"HNL"}', 10),  # it comes late
        Change(FLIGHTS, b'{"flight":2}', None, 30),
        Change(FLIGHTS, b'{"flight":2}', b'{"dest":"SFO"}', 20),
        Change(WEATHER, b'{"origin":"EWR"}', b'{"temp":1.0}', 5),
        Change(WEATHER, b'{"origin":"EWR"}', b'{"temp":2.0}', 5),  # at the same time: the later one
    ]
    assert last_rows(changes) == {
        FLIGHTS: [{"flight": 1, "dest": "IAH"}],
        WEATHER: [{"origin": "EWR", "temp": 2.0}],
    }
    late, withdrawn = told(
        [*changes, Change(WEATHER, b"{}", b"{}", 1), Change(WEATHER, b"{}", None, 2)]
    ).values()
    assert (late.topic, late.value) == (FLIGHTS, b'{"dest":"HNL"}')
    assert (withdrawn.topic, withdrawn.value) == (WEATHER, None)


def test_the_file_has_each_topic_into_delta_and_postgresql() -> None:
    environment = pipeline_environment("localhost:9092", Path("/demo")) | {
        "OTTLA_DEMO_DATABASE": "jdbc:postgresql://localhost:5432/lake",
        "OTTLA_DEMO_USER": "app",
        "OTTLA_DEMO_PASSWORD": "secret",
    }
    pipelines = read_file(TABLES_FILE, environment).pipelines
    found = [(one.source.topic, isinstance(one.sink, DeltaSpec)) for one in pipelines]
    assert found == [(topic, is_delta) for topic in TOPICS for is_delta in (True, False)]
    for one in pipelines:
        assert isinstance(one.sink, DeltaSpec | DatabaseSpec)
        assert one.sink.keys == KEYS[one.source.topic]
        fields = f"{one.source.key_schema}, {one.source.schema}".split(",")
        assert tuple(field.split()[0] for field in fields) == COLUMNS[one.source.topic]


@pytest.mark.full
def test_there_are_updates_deletions_and_records_that_overtake_each_other() -> None:
    changes = read_changes()
    rows = last_rows(changes)
    # Each flight that flew, and each measurement that was not withdrawn, by its key.
    assert len(rows[FLIGHTS]) == 336_776 - 8_255
    assert changes == read_changes()
    newest: dict[tuple[str, bytes], int] = {}
    late: Counter[str] = Counter()
    for change in changes:
        place = change.topic, change.key
        late[change.topic] += change.timestamp_ms < newest.get(place, 0)
        newest[place] = max(newest.get(place, 0), change.timestamp_ms)
    assert late[FLIGHTS] > 1_000
    assert late[WEATHER] > 1_000
    keys = {json.dumps([row[name] for name in KEYS[FLIGHTS]]) for row in rows[FLIGHTS]}
    assert len(keys) == len(rows[FLIGHTS])
