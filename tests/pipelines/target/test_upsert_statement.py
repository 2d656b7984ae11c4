"""The statement that gives each key its last record, as text; test_merge.py runs it."""

from __future__ import annotations

from dataclasses import replace

from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.upsert_statement import upsert_statement

COLUMNS = ("id", "a`b", "partition", "offset")
KEYED = KeyedTable(("id",), COLUMNS)
DELETING = replace(KEYED, order_by="a`b", has_tombstones=True)


def clauses(keyed: KeyedTable) -> list[str]:
    return upsert_statement(keyed, "delta.`/lake/a``b`", "v").splitlines()


def test_without_an_order_a_second_partition_of_a_key_stops_the_query() -> None:
    assert clauses(KEYED) == [
        "MERGE INTO delta.`/lake/a``b` AS t",
        "USING (SELECT row.* FROM (SELECT if(min(`partition`) <> max(`partition`), "
        "raise_error(concat('OTTLA_UNORDERED_KEY ', to_json(struct(`id`)))), "
        "max_by(struct(`id`, `a``b`, `partition`, `offset`), struct(`partition`, `offset`))) "
        "AS row FROM v GROUP BY `id`)) AS s",
        "ON t.`id` = s.`id` AND if(t.`partition` <> s.`partition`, "
        "raise_error(concat('OTTLA_UNORDERED_KEY ', to_json(struct(s.`id`)))), true)",
        "WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`a``b` = s.`a``b`, "
        "t.`partition` = s.`partition`, t.`offset` = s.`offset`",
        "WHEN NOT MATCHED THEN INSERT (`id`, `a``b`, `partition`, `offset`) "
        "VALUES (s.`id`, s.`a``b`, s.`partition`, s.`offset`)",
    ]


def test_with_an_order_an_older_record_replaces_and_deletes_nothing() -> None:
    newer = (
        "(t.`a``b` IS NULL OR struct(s.`a``b`, s.`partition`, s.`offset`) >= "
        "struct(t.`a``b`, t.`partition`, t.`offset`))"
    )
    delete, update, insert = clauses(DELETING)[3:]
    assert delete == f"WHEN MATCHED AND {newer} AND coalesce(s.tombstone, false) THEN DELETE"
    assert update.startswith(f"WHEN MATCHED AND {newer} THEN UPDATE SET t.`id` = s.`id`, ")
    assert insert.startswith("WHEN NOT MATCHED AND NOT coalesce(s.tombstone, false) THEN INSERT (")


def test_marked_deletions_are_rows() -> None:
    update, insert = clauses(replace(DELETING, deletes="mark"))[3:]
    assert update.endswith("t.is_deleted = coalesce(s.tombstone, false)")
    assert insert.endswith("coalesce(s.tombstone, false))")


def test_without_a_position_the_column_alone_orders() -> None:
    keyed = KeyedTable(("id",), ("id", "at"), order_by="at", position=())
    text = "\n".join(clauses(keyed))
    assert "max_by(struct(`id`, `at`), struct(`at`))" in text
    assert "(t.`at` IS NULL OR struct(s.`at`) >= struct(t.`at`))" in text
    once = "\n".join(clauses(KeyedTable(("id",), ("id",), position=())))
    assert "if(count(*) > 1, raise_error(" in once
    assert "WHEN MATCHED THEN UPDATE" in once


def test_the_topic_belongs_to_the_position_of_a_record() -> None:
    position = ("topic", "partition", "offset")
    text = "\n".join(clauses(replace(KEYED, position=position)))
    assert "min(struct(`topic`, `partition`)) <> max(struct(`topic`, `partition`))" in text
    assert "struct(`topic`, `partition`, `offset`))) AS row" in text
    assert "if(t.`topic` <> s.`topic` OR t.`partition` <> s.`partition`, raise_error(" in text


def test_rows_of_one_record_are_looked_for_only_where_there_may_be_some() -> None:
    text = "\n".join(clauses(replace(DELETING, is_shared=True)))
    assert "OVER (PARTITION BY `id` ORDER BY `a``b`, `partition`, `offset`)" in text
    assert "OTTLA_SHARED_POSITION" in text
    assert "OTTLA_SHARED_POSITION" not in "\n".join(clauses(DELETING))


def test_a_truncation_takes_the_rows_whose_keys_the_batch_lacks() -> None:
    def last(keyed: KeyedTable) -> str:
        return upsert_statement(keyed, "t", "v", "place").splitlines()[-1]

    whole = "WHEN NOT MATCHED BY SOURCE AND NOT false THEN DELETE"
    assert last(KEYED) == whole  # what is in the table was read before
    later = "(t.`a``b` IS NOT NULL AND struct(t.`a``b`, t.`partition`, t.`offset`) > place)"
    assert last(DELETING) == f"WHEN NOT MATCHED BY SOURCE AND NOT {later} THEN DELETE"
    assert last(replace(DELETING, deletes="mark")) == (
        f"WHEN NOT MATCHED BY SOURCE AND NOT {later} THEN UPDATE SET t.is_deleted = true, "
        "t.`a``b` = place.`a``b`, t.`partition` = place.`partition`, t.`offset` = place.`offset`"
    )
    # What the row of a key had before the truncation fills no null.
    folded = upsert_statement(replace(DELETING, ignore_nulls=True), "t", "v", "place")
    assert "JOIN touched ON old.`id` = touched.`id` AND (old.`a``b` IS NOT NULL AND " in folded


def test_a_truncation_takes_the_rows_of_its_own_topic_where_each_key_has_one() -> None:
    position = ("topic", "partition", "offset")
    keyed = replace(KEYED, keys=("topic", "id"), columns=("topic", *COLUMNS), position=position)
    place = "try_element_at(places, t.`topic`)"

    def last(keyed: KeyedTable) -> str:
        return upsert_statement(keyed, "t", "v", "places").splitlines()[-1]

    assert last(keyed) == f"WHEN NOT MATCHED BY SOURCE AND NOT ({place} IS NULL) THEN DELETE"
    keyed = replace(keyed, order_by="a`b", has_tombstones=True, deletes="mark")
    order = "struct(t.`a``b`, t.`topic`, t.`partition`, t.`offset`)"
    stays = f"({place} IS NULL OR (t.`a``b` IS NOT NULL AND {order} > {place}))"
    assert last(keyed) == (
        f"WHEN NOT MATCHED BY SOURCE AND NOT {stays} THEN UPDATE SET t.is_deleted = true, "
        f"t.`a``b` = {place}.`a``b`, t.`partition` = {place}.`partition`, "
        f"t.`offset` = {place}.`offset`"
    )
    folded = upsert_statement(replace(keyed, ignore_nulls=True), "t", "v", "places")
    assert "AND (try_element_at(places, old.`topic`) IS NULL OR (old.`a``b` IS " in folded


def test_a_truncation_leaves_the_keys_of_the_rows_that_it_marks() -> None:
    keyed = replace(DELETING, keys=("id", "partition"), deletes="mark")
    marks = upsert_statement(keyed, "t", "v", "place").splitlines()[-1]
    assert marks == (
        "WHEN NOT MATCHED BY SOURCE AND NOT (t.`a``b` IS NOT NULL AND "
        "struct(t.`a``b`, t.`partition`, t.`offset`) > place) THEN UPDATE SET "
        "t.is_deleted = true, t.`a``b` = place.`a``b`, t.`offset` = place.`offset`"
    )
