"""The statement that keeps every version, as text; test_merge.py runs it."""

from __future__ import annotations

from dataclasses import replace

from ottla.pipelines.sinks.delta.history_statement import history_statement
from ottla.pipelines.target.keyed_table import KeyedTable

KEYED = KeyedTable(("id", "k"), ("id", "k", "at", "partition", "offset"), "at", history=True)


def test_a_version_is_found_by_key_and_place_and_only_its_end_changes() -> None:
    lines = history_statement(KEYED, "/lake/t", "v").splitlines()
    on, update, insert = lines[-3:]

    assert lines[0] == "MERGE INTO delta.`/lake/t` AS t"
    assert on == (
        "ON t.`id` = s.`id` AND t.`k` = s.`k` AND t.valid_from = s.valid_from "
        "AND t.`partition` = s.`partition` AND t.`offset` = s.`offset`"
    )
    assert update == (
        "WHEN MATCHED THEN UPDATE SET t.valid_to = s.valid_to, t.is_current = s.is_current"
    )
    assert insert == (
        "WHEN NOT MATCHED THEN INSERT (`id`, `k`, `at`, `partition`, `offset`, valid_from, "
        "valid_to, is_current) VALUES (s.row.`id`, s.row.`k`, s.row.`at`, s.row.`partition`, "
        "s.row.`offset`, s.valid_from, s.valid_to, s.is_current)"
    )


def test_versions_of_two_topics_are_told_apart() -> None:
    keyed = replace(KEYED, position=("topic", "partition", "offset"))
    on = history_statement(keyed, "/lake/t", "v").splitlines()[-3]
    # Null in the rows from before the table had the column.
    assert " AND t.`topic` <=> s.`topic` AND t.`partition` = s.`partition` AND" in on
