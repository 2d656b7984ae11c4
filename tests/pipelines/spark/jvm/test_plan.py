"""Spark's plans, node by node; the tests of the files that follow them have more of them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.plan import Node, nodes, plan_of

pytestmark = pytest.mark.spark


def only(frame: Any, kind: str) -> Node:
    (found,) = (node for node in nodes(frame) if node.kind == kind)
    return found


def test_every_node_of_a_plan_is_found(spark: Any) -> None:
    one = spark.range(3).where("id > 0")
    kinds = [node.kind for node in nodes(one.union(spark.range(2)))]
    assert sorted(kinds) == ["Filter", "Range", "Range", "Union"]
    assert plan_of(one) == plan_of(one)
    assert plan_of(one) != plan_of(spark.range(2))


def test_columns_and_how_they_are_made(spark: Any) -> None:
    frame = spark.range(1).selectExpr("id", "id AS same", "'a' AS text", "1 AS one")
    node = plan_of(frame)
    assert [one.name for one in node.output] == ["id", "same", "text", "one"]
    (source,) = node.children
    (given,) = source.output
    kept, same, text, one = node.projection
    assert (kept.kind, kept.number) == ("AttributeReference", given.number)
    assert (same.kind, same.child.number) == ("Alias", given.number)
    assert same.number != given.number
    assert source.has(given)
    assert not source.has(node.output[1])
    assert (text.child.kind, text.child.text, one.child.text) == ("Literal", "a", None)


def test_fields_of_a_struct(spark: Any) -> None:
    frame = spark.sql("SELECT named_struct('a', 1, 'b', 2) AS s")
    taken, dropped = (
        plan_of(made).projection[0].child
        for made in (frame.select("s.b"), frame.select(frame["s"].dropFields("a")))
    )
    assert (taken.kind, taken.field, taken.child.name) == ("GetStructField", "b", "s")
    assert (dropped.kind, dropped.struct.name) == ("UpdateFields", "s")


def test_what_a_stream_reads(spark: Any) -> None:
    options = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "flights"}
    frame = spark.readStream.format("kafka").options(**options).load()
    stream = only(frame, "StreamingRelationV2")
    assert stream.is_streaming
    assert (stream.source, stream.option("subscribe"), stream.option("x")) == (
        "kafka",
        "flights",
        "",
    )
    assert not plan_of(spark.range(1)).is_streaming


def test_queries_of_with_and_joins(spark: Any) -> None:
    plan = plan_of(spark.sql("WITH r AS (SELECT 1 AS id) SELECT * FROM r"))
    assert plan.kind == "WithCTE"
    waiting, (number,) = [plan.plan], plan.queries
    while waiting and waiting[-1].kind != "CTERelationRef":
        waiting += waiting.pop().children
    assert waiting[-1].query == number
    assert plan.queries[number].output[0].name == "id"
    one, other = spark.range(1), spark.range(1)
    assert only(one.join(other, "id", "left_semi"), "Join").join == "LeftSemi"
