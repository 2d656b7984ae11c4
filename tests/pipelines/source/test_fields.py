"""A schema's fields by their paths."""

from typing import Any

import pytest

from ottla.pipelines.source.fields import fields_of, strings_of
from ottla.pipelines.source.parse import read_schema

pytestmark = pytest.mark.spark


def test_fields_and_texts_of_a_nested_schema(spark: Any) -> None:
    schema = read_schema("a INT, n STRUCT<b: DATE, m: STRUCT<c: INT>>", "schema")

    flat = [(path, kind.simpleString()) for path, kind in fields_of(schema, deep=False)]
    deep = [(path, kind.simpleString()) for path, kind in fields_of(schema, deep=True)]

    assert [path for path, _ in flat] == [("a",), ("n",)]
    assert deep == [(("a",), "int"), (("n", "b"), "date"), (("n", "m", "c"), "int")]
    assert strings_of(schema, deep=False).simpleString() == "struct<a:string,n:string>"
    assert strings_of(schema, deep=True).simpleString() == (
        "struct<a:string,n:struct<b:string,m:struct<c:string>>>"
    )
