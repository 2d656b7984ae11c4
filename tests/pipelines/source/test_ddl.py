"""Spark's DDL read without Spark: what it cannot judge it leaves to Spark."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.source.ddl import DdlError, read_ddl
from ottla.pipelines.source.fields import kind_of, type_of

READ = [
    ("carrier STRING NOT NULL, delay DOUBLE", "struct<carrier:string,delay:double>"),
    ("a: int, b: byte", "struct<a:int,b:tinyint>"),
    ("string", "string"),
    ("DECIMAL(10, 2)", "decimal(10,2)"),
    ("a decimal, b NUMERIC(5)", "struct<a:decimal(10,0),b:decimal(5,0)>"),
    ("array<struct<x: long, y: real>>", "array<struct<x:bigint,y:float>>"),
    ("m MAP<STRING, ARRAY<INT>> COMMENT 'all'", "struct<m:map<string,array<int>>>"),
    ("`two words` timestamp_ntz, date DATE", "struct<two words:timestamp_ntz,date:date>"),
    ("struct<>", "struct<>"),
    ("a VARCHAR(10)", None),
    ("i INTERVAL DAY TO SECOND, b INT", None),
    ("a STRING COLLATE UTF8_LCASE", None),
    ("a INT DEFAULT 1", None),
    ("interval day", None),
]
REFUSED = [
    ("carrier STRNG", "STRNG is no type; did you mean STRING?"),
    ("carrier", "carrier is no type"),
    ("carrier STRING, delay", "the field delay has no type"),
    ("carrier STRING delay DOUBLE", "a comma is missing after the field carrier, before 'delay'"),
    ("carrier STRING,", "a field is missing at its end"),
    ("a INT NOT", "NULL is missing after NOT in the field a"),
    ("a ARRAY<INT", "'>' is missing at the end of ARRAY"),
    ("a MAP<INT>", "',' is missing between the types of MAP"),
    ("a STRUCT<b INT, c STRING", "'>' is missing after the field c"),
    ("map<int, boolean>>", "'>' is too much"),
    ("a INT>", "'>' is too much"),
    (", a INT", "a field's name is missing before ','"),
    ("  ", "it is empty"),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_what_it_reads_and_what_it_leaves_to_spark(text: str, expected: str | None) -> None:
    kind = read_ddl(text)
    assert (None if kind is None else kind.text()) == expected


@pytest.mark.parametrize("text", [text for text, expected in READ if expected])
def test_its_type_is_made_without_spark(text: str) -> None:
    kind = read_ddl(text)
    assert kind is not None
    assert kind_of(type_of(kind)) == kind


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_it_refuses(text: str, words: str) -> None:
    with pytest.raises(DdlError) as failure:
        read_ddl(text)
    assert str(failure.value).startswith(words)


def test_not_null_is_kept() -> None:
    kind = read_ddl("a INT NOT NULL, b INT")
    assert kind is not None
    assert [field.nullable for field in kind.fields] == [False, True]


def test_a_deep_schema_is_left_to_spark() -> None:
    assert read_ddl("a " + "ARRAY<" * 60 + "INT" + ">" * 60) is None


@pytest.mark.spark
def test_spark_reads_the_same_and_refuses_the_same(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType

    for text, expected in READ:
        if expected is not None:
            assert DataType.fromDDL(text).simpleString() == expected, text
    for text, _ in REFUSED:
        if text.strip():
            with pytest.raises(PySparkException):
                DataType.fromDDL(text)
