"""What only the JVM's session can do."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm import sessions
from ottla.pipelines.spark.jvm.attributes import java_class, java_session

pytestmark = pytest.mark.spark


def test_a_copy_has_the_settings_and_none_of_the_later_ones(spark: Any) -> None:
    copy = sessions.copied(spark)
    assert sessions.is_same(spark, spark)
    assert not sessions.is_same(spark, copy)
    copy.conf.set("ottla.test", "1")
    assert spark.conf.get("ottla.test", None) is None
    assert copy.conf.get("spark.sql.extensions") == spark.conf.get("spark.sql.extensions")
    assert copy.sparkContext is spark.sparkContext


def test_a_size_in_any_unit_is_bytes(spark: Any) -> None:
    copy = sessions.copied(spark)
    for given, limit_bytes in (("10MB", 10 << 20), ("-1", -1), ("77", 77)):
        copy.conf.set("spark.sql.autoBroadcastJoinThreshold", given)
        assert sessions.broadcast_limit_bytes(copy) == limit_bytes


def test_the_session_of_javas_thread(spark: Any) -> None:
    copy = sessions.copied(spark)
    thread = java_class(spark, "java.lang.Thread").currentThread()
    kind = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    name = thread.getName()
    try:
        sessions.make_active(copy, "ottla-test")
        assert thread.getName() == "ottla-test"
        assert kind.getActiveSession().get().equals(java_session(copy))
    finally:
        sessions.make_active(spark, name)
