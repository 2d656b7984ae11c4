"""The statement for batches in order, as text; test_merge.py runs it."""

from __future__ import annotations

from ottla.pipelines.sinks.delta.in_order_statement import in_order_statement
from ottla.pipelines.target.keyed_table import KeyedTable

COLUMNS = ("id", "k", "at", "partition", "offset")
KEYED = KeyedTable(("id", "k"), COLUMNS, "at", history=True)


def test_the_current_version_ends_and_the_new_ones_are_inserted() -> None:
    lines = in_order_statement(KEYED, "/lake/t", "v").splitlines()
    on, update, insert = lines[-3:]

    assert lines[0] == "MERGE INTO delta.`/lake/t` AS t"
    assert on.startswith("ON t.`id` = s.`id` AND t.`k` = s.`k` AND s.is_first AND (s.closes AND ")
    assert update == "WHEN MATCHED THEN UPDATE SET t.valid_to = s.valid_from, t.is_current = false"
    assert insert.startswith("WHEN NOT MATCHED AND NOT s.closes THEN INSERT (`id`, `k`, `at`, ")


def test_the_batch_is_read_once_and_the_table_only_by_the_merge() -> None:
    statement = in_order_statement(KEYED, "/lake/t", "the_view")

    assert statement.count("the_view") == 1
    assert statement.count("/lake/t") == 1


def test_only_a_frame_with_tombstones_is_asked_for_them() -> None:
    with_mark = KeyedTable(("id",), COLUMNS, "at", has_tombstones=True, history=True)

    assert "tombstone" not in in_order_statement(KEYED, "/lake/t", "v")
    assert "coalesce(tombstone, false) AS is_point" in in_order_statement(with_mark, "/t", "v")
