"""The statements of a batch as text; test_jdbc.py runs them."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from ottla.pipelines.sinks.postgresql import statements
from ottla.pipelines.sinks.postgresql.table import TableName
from ottla.pipelines.target.keyed_table import KeyedTable

NAME = TableName("lake", 'a"b')
FRAME = StructType().add("id", LongType()).add("word", StringType())
FRAME = FRAME.add("partition", IntegerType()).add("offset", LongType())
COLUMNS = ("id", "word", "partition", "offset")
KEYED = KeyedTable(("id",), COLUMNS)
ORDERED = replace(KEYED, order_by="word", has_tombstones=True)
NEWER = (
    '(t."word" IS NULL OR (excluded."word" COLLATE "C", excluded."partition", excluded."offset") '
    '>= (t."word" COLLATE "C", t."partition", t."offset"))'
)


def test_tables_are_made_with_quoted_names() -> None:
    assert (
        statements.create_table(NAME, [("id", "bigint"), ('x"', "text")], ["id"])
        == 'CREATE TABLE IF NOT EXISTS "lake"."a""b" ("id" bigint, "x""" text, PRIMARY KEY ("id"))'
    )
    assert statements.add_columns(NAME, [("x", "text"), ("y", "date")]) == (
        'ALTER TABLE "lake"."a""b" ADD COLUMN "x" text, ADD COLUMN "y" date'
    )
    assert '"lake"."ottla_batches"' in statements.create_markers(NAME)
    assert statements.create_rows(NAME, ["id"]).startswith(
        'CREATE TEMPORARY TABLE "ottla_rows" ON COMMIT DROP AS SELECT "id", CAST(NULL AS boolean)'
    )
    assert statements.append_rows(NAME, ["id"]).startswith('COPY "lake"."a""b" ("id") FROM STDIN')
    assert statements.copy_rows(["id"], has_tombstones=True).startswith(
        'COPY pg_temp."ottla_rows" ("id", "ottla_deletes") FROM STDIN'
    )


def test_a_batch_is_noted_once() -> None:
    once = statements.mark_batch(NAME, once=True)
    assert once.endswith(' WHERE "ottla_batches".batch < excluded.batch')
    assert "WHERE" not in statements.mark_batch(NAME, once=False)


def test_without_an_order_a_key_of_another_partition_is_looked_for() -> None:
    found = statements.find_unordered(NAME, KEYED)
    assert found is not None
    assert found.endswith('ON t."id" = s."id" WHERE t."partition" <> s."partition" LIMIT 1')
    assert "json_build_object('id', s.\"id\")" in found
    assert statements.find_unordered(NAME, ORDERED) is None
    assert statements.find_unordered(NAME, replace(KEYED, position=())) is None


def test_keys_that_the_table_has_as_one_are_looked_for_in_it_and_in_the_batch() -> None:
    found = statements.find_alike(NAME, replace(KEYED, keys=("id", "word")), ["word"])
    assert found.count('CAST(t."word" AS text) COLLATE "C" <> CAST(s."word" AS text)') == 2
    assert found.count('AS t ON t."id" = s."id" AND t."word" = s."word"') == 2
    assert 'JOIN "lake"."a""b" AS t' in found
    assert 'JOIN pg_temp."ottla_rows" AS t' in found


def test_the_topic_belongs_to_the_place_of_a_record() -> None:
    keyed = replace(KEYED, position=("topic", "partition", "offset"))
    found = statements.find_unordered(NAME, keyed)
    assert found is not None
    assert 'WHERE t."topic" <> s."topic" OR t."partition" <> s."partition" LIMIT 1' in found
    schema = StructType([*FRAME.fields]).add("topic", StringType())
    # Null in the rows from before the table had the column.
    text = statements.upsert_rows(NAME, replace(keyed, order_by="word"), schema, COLUMNS)
    assert """t."word" COLLATE "C", coalesce(t."topic", '') COLLATE "C", t."partition",""" in text


def test_an_upsert_replaces_what_is_older() -> None:
    plain = statements.upsert_rows(NAME, KEYED, FRAME, COLUMNS)
    assert plain.endswith(
        'FROM pg_temp."ottla_rows" ON CONFLICT ("id") DO UPDATE SET "word" = excluded."word", '
        '"partition" = excluded."partition", "offset" = excluded."offset"'
    )
    ordered = statements.upsert_rows(NAME, ORDERED, FRAME, COLUMNS)
    assert ordered.endswith(f"WHERE {NEWER}")
    assert 'WHERE "ottla_deletes" IS NOT TRUE ON CONFLICT' in ordered
    only_keys = KeyedTable(("id",), ("id",), position=())
    assert statements.upsert_rows(NAME, only_keys, FRAME, ["id"]).endswith("DO NOTHING")


def test_tombstones_delete_or_are_marked() -> None:
    assert statements.delete_rows(NAME, KEYED, FRAME) is None
    delete = statements.delete_rows(NAME, ORDERED, FRAME)
    assert delete is not None
    assert delete.endswith(NEWER.replace("excluded.", "s."))
    marked = replace(ORDERED, deletes="mark")
    assert statements.delete_rows(NAME, marked, FRAME) is None
    assert '"is_deleted" = excluded."is_deleted"' in statements.upsert_rows(
        NAME, marked, FRAME, COLUMNS
    )


def test_what_a_trigger_left_out_is_found_by_the_order_of_the_records() -> None:
    stays = 'CASE WHEN s."ottla_deletes" IS TRUE THEN EXISTS'
    plain = statements.find_left_out(NAME, KEYED, FRAME)
    assert stays in plain
    assert plain.endswith(
        '(t."partition" IS DISTINCT FROM s."partition" OR '
        't."offset" IS DISTINCT FROM s."offset")) END)'
    )
    ordered = statements.find_left_out(NAME, ORDERED, FRAME)
    assert NEWER.replace("excluded.", "s.") in ordered
    assert ordered.endswith(f"{NEWER.replace('excluded.', 's.').replace('>=', '>')}) END)")
    marked = statements.find_left_out(NAME, replace(ORDERED, deletes="mark"), FRAME)
    assert stays not in marked
    # Of a result nothing says whether it is the last one.
    result = statements.find_left_out(NAME, replace(KEYED, position=()), FRAME)
    assert result.endswith('AS t WHERE t."id" = s."id") END)')


def test_a_truncation_takes_the_rows_of_its_own_topic_where_each_key_has_one() -> None:
    position = ("topic", "partition", "offset")
    keyed = replace(KEYED, keys=("topic", "id"), position=position)
    removes = statements.truncate_rows(NAME, keyed, FRAME)
    assert removes.startswith('DELETE FROM "lake"."a""b" AS t USING json_populate_recordset(')
    assert removes.endswith(' AS s WHERE t."topic" = s."topic"')
    removes = statements.truncate_rows(NAME, replace(keyed, order_by="word"), FRAME)
    assert ' AS s WHERE t."topic" = s."topic" AND (t."word" IS NULL OR (t."word" ' in removes
    assert removes.endswith(")")


def test_a_truncation_leaves_the_keys_of_the_rows_that_it_marks() -> None:
    keyed = replace(ORDERED, keys=("id", "partition"), deletes="mark")
    marks = statements.truncate_rows(NAME, keyed, FRAME)
    assert marks.startswith(
        'UPDATE "lake"."a""b" AS t SET "is_deleted" = true, "word" = s."word", '
        '"offset" = s."offset" FROM json_populate_recordset('
    )
