"""Which of Spark's managers of small files a query gets."""

from typing import Any

import pytest

from ottla.pipelines.run.local_files import FILE_MANAGER, local_files

pytestmark = pytest.mark.spark

LOCAL = "file:/data/flights"


def test_a_query_on_local_files_renames_by_file_system(spark: Any) -> None:
    with local_files(spark, LOCAL, LOCAL):
        chosen = spark.conf.get(FILE_MANAGER)
        spark._jvm.java.lang.Class.forName(chosen)
    assert chosen.endswith(".FileSystemBasedCheckpointFileManager")
    assert spark.conf.get(FILE_MANAGER, None) is None


def test_a_query_on_another_file_system_keeps_sparks_choice(spark: Any) -> None:
    with local_files(spark, LOCAL, "s3a://lake/flights"):
        assert spark.conf.get(FILE_MANAGER, None) is None


def test_the_users_own_class_stays(spark: Any) -> None:
    spark.conf.set(FILE_MANAGER, "org.example.Manager")
    try:
        with local_files(spark, LOCAL, LOCAL):
            assert spark.conf.get(FILE_MANAGER) == "org.example.Manager"
        assert spark.conf.get(FILE_MANAGER) == "org.example.Manager"
    finally:
        spark.conf.unset(FILE_MANAGER)
