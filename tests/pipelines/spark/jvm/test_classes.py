"""Which classes the running Spark has."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.classes import first_class, why_not_loaded

pytestmark = pytest.mark.spark

THERE = "java.lang.String"
NOWHERE = "org.apache.spark.Nowhere"


def test_what_java_says_of_a_class_that_is_missing(spark: Any) -> None:
    assert why_not_loaded(spark, THERE) is None
    assert f"ClassNotFoundException: {NOWHERE}" in (why_not_loaded(spark, NOWHERE) or "")


def test_the_first_class_that_is_there(spark: Any) -> None:
    assert first_class(spark, [NOWHERE, THERE]) == THERE
    assert first_class(spark, [NOWHERE]) is None
