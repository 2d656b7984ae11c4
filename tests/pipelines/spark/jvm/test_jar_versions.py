"""The versions that the jars say."""

from importlib.metadata import version
from typing import Any

import pytest

from ottla.pipelines.spark.jvm.context import spark_home
from ottla.pipelines.spark.jvm.jar_versions import delta_version, hadoop_version

pytestmark = pytest.mark.spark


def test_delta_and_hadoop_say_their_versions(spark: Any) -> None:
    assert delta_version(spark) == version("delta-spark")
    assert (spark_home() / "jars" / f"hadoop-client-api-{hadoop_version()}.jar").is_file()
