"""Where a pipeline's rows go: what a commit says, and the text that a step's name keeps."""

import pytest

from ottla.timelines.destination import Destination, destination_of, read_destination

POSTGRES = {
    "kind": "postgresql",
    "place": "public.flights in postgresql://db/lake",
    "version": 9,
    "rows": "upsert",
    "order": "timestamp",
    "deletes": "mark",
    "key": "message",
    "called": "PostgreSQL",
}


def test_what_a_commit_says_survives_the_name_of_a_step() -> None:
    found = read_destination(POSTGRES)
    assert found is not None
    assert found[2:] == ("upsert", "timestamp", "mark", True, "PostgreSQL", "table")
    assert destination_of(found.text()) == found


def test_a_delta_table_that_is_appended_to_has_its_place_as_before() -> None:
    found = read_destination({"kind": "delta", "place": "/lake/flights", "version": 3})
    assert found == Destination("delta", "/lake/flights")
    assert found.text() == found._replace(called="Delta").text()
    assert found.text() == "/lake/flights"
    assert destination_of("/lake/flights") == found._replace(called="Delta")
    assert destination_of("") is None


def test_rules_that_are_unknown_are_left_out() -> None:
    found = read_destination({**POSTGRES, "rows": "shuffle", "order": 3, "key": "row"})
    assert found is not None
    assert found[2:6] == ("append", "offset", "mark", False)


@pytest.mark.parametrize(
    "said", [None, 3, [], {}, {**POSTGRES, "kind": "A tape"}, {**POSTGRES, "place": ""}]
)
def test_what_is_no_destination(said: object) -> None:
    assert read_destination(said) is None


def test_a_sink_names_its_own_kind() -> None:
    said = {**POSTGRES, "kind": "iceberg", "called": "Iceberg", "place_is": "folder"}
    found = read_destination(said)
    assert found is not None
    assert (found.kind, found.called, found.place_is) == ("iceberg", "Iceberg", "folder")
    assert destination_of(found.text()) == found


def test_a_name_that_is_damaged_is_none() -> None:
    assert destination_of("{") is None
    assert destination_of('{"a":' + "[" * 5000) is None
