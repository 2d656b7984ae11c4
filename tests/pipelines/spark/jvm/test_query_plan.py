"""The nodes of a plan, all of them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.query_plan import nodes

pytestmark = pytest.mark.spark


def test_every_node_of_a_plan_is_found(spark: Any) -> None:
    one = spark.range(3).where("id > 0")
    names = [node.nodeName() for node in nodes(one.union(spark.range(2)))]
    assert sorted(names) == ["Filter", "Range", "Range", "Union"]
