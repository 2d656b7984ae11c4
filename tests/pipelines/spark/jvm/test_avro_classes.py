"""What Avro and Spark's module for it say of schemas."""

import json
from typing import Any

import pytest
from tests.pipelines.jars import formats

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.avro_classes import AvroClasses

pytestmark = pytest.mark.spark


def record(**fields: object) -> str:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "Row", "fields": listed})


@pytest.fixture
def classes(spark: Any) -> AvroClasses:
    if "avro" not in formats():
        pytest.skip("the jars of this lane are without Spark's module for Avro")
    return AvroClasses(spark)


def test_the_type_that_spark_has_for_a_schema(classes: AvroClasses) -> None:
    found = json.loads(classes.spark_type(classes.parse(record(id="long"), "s"), "s"))
    assert [(one["name"], one["type"]) for one in found["fields"]] == [("id", "long")]


def test_what_is_no_schema(classes: AvroClasses) -> None:
    with pytest.raises(PipelineError, match="s is no Avro schema"):
        classes.parse('{"type": "lang"}', "s")


def test_whether_one_schema_reads_the_data_of_another(classes: AvroClasses) -> None:
    number, text = (classes.parse(record(id=kind), "s") for kind in ("long", "string"))
    assert classes.conflict(number, number) is None
    assert (classes.conflict(number, text) or "").startswith("type mismatch at /")


def test_without_sparks_module_the_error_says_what_to_do(spark: Any) -> None:
    if "avro" in formats():
        pytest.skip("this session has Spark's module for Avro")
    with pytest.raises(PipelineError, match=r"formats=\['avro'\]"):
        AvroClasses(spark)
