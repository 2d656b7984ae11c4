"""The way from PySpark's objects to their JVM."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm import attributes

pytestmark = pytest.mark.spark


def test_each_object_leads_to_the_one_of_the_jvm(spark: Any) -> None:
    classic = "org.apache.spark.sql.classic"
    assert attributes.is_instance(attributes.java_session(spark), f"{classic}.SparkSession")
    assert attributes.is_instance(attributes.java_frame(spark.range(1)), f"{classic}.Dataset")
    assert not attributes.is_instance(attributes.java_session(spark), f"{classic}.Dataset")
    query = spark.readStream.format("rate").load().writeStream.format("noop").start()
    try:
        assert attributes.java_query(query).id().toString() == query.id
    finally:
        query.stop()


def test_a_class_is_found_by_its_full_name(spark: Any) -> None:
    for start in (spark, spark.sparkContext):
        assert attributes.java_class(start, "java.lang.Integer").valueOf("7") == 7
    assert attributes.java_class(spark, "java.util.Map$Entry")._fqn == "java.util.Map$Entry"
    assert attributes.java_class(spark, "java.lang.Integer") is attributes.java_class(
        spark.sparkContext, "java.lang.Integer"
    ), "it is asked for once"
    package = attributes.java_class(spark, "no.such.Name")
    assert package is not attributes.java_class(spark, "no.such.Name"), "it may become a class"
    assert attributes.gateway().jvm.java.lang.Integer.valueOf("8") == 8
