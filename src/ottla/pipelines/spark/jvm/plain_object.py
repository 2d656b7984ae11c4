"""`PlainObject.java` as a Spark column: JSON objects that need no closer look, read at once.

Spark's from_json makes a parser for each text, and does not say what it changed or left out. The
class reads the usual objects in a quarter of the time, and leaves all others to from_json.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import gateway, java_class, java_column
from ottla.pipelines.spark.jvm.compiled import has_compiler, java_array, new_object

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType, StructType

SETTING: Final = "spark.ottla.plainObjects.enabled"
"""The setting of a session; "false" leaves all texts to from_json."""
MAX_FIELDS: Final = 200
"""At every depth: a field that is not where the schema has it is looked for among all."""
_DATA_TYPE: Final = "org.apache.spark.sql.types.DataType"
_UDF: Final = "org.apache.spark.sql.api.java.UDF1"
_KINDS: Final = (
    "string",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "boolean",
    "date",
    "timestamp",
)
_TIMES: Final = ("date", "timestamp")
_PARSER_POLICY: Final = "spark.sql.legacy.timeParserPolicy"
_COMMENT: Final = {"comment"}


def plain_object(spark: SparkSession, column: Column, schema: StructType) -> Column | None:
    """Return the object in a column of bytes, null where from_json is to read it.

    None: the schema has what the class does not read, or the session has not the class. Spark does
    not compute the column again in each step of the plan that asks for it.
    """
    kinds = list(_kinds(schema))
    if len(kinds) > MAX_FIELDS or not all(map(_is_read, kinds)):
        return None
    if not len(schema.fields) or spark.conf.get(SETTING, "true") == "false":
        return None
    has_times = any(kind.simpleString() in _TIMES for kind in kinds)
    if has_times and spark.conf.get(_PARSER_POLICY) == "LEGACY":
        return None  # which cuts the digits of a second
    if not has_compiler(spark):
        return None
    return _applied(spark, column, schema)


def _kinds(kind: DataType) -> Iterator[DataType]:
    """Return a type and those inside of it."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    yield kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _kinds(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _kinds(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _kinds(kind.valueType)


def _is_read(kind: DataType) -> bool:
    """Tell whether the class reads values of a type, apart from what is inside of it."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(kind, StructType):
        return all(
            # A default stands for a field that is missing.
            set(field.metadata or ()) <= _COMMENT
            and all(one >= " " and one not in '"\\' for one in field.name)
            for field in kind.fields
        )
    if isinstance(kind, MapType):
        return bool(kind.keyType.simpleString() == "string")
    return isinstance(kind, ArrayType | DecimalType) or kind.simpleString() in _KINDS


def _applied(spark: SparkSession, column: Column, schema: StructType) -> Column:
    from pyspark.sql import Column

    types = java_class(spark, _DATA_TYPE)
    kind = types.fromJson(schema.json())
    reader = new_object(spark, "PlainObject", kind)
    # By reflection: py4j would choose another one of the functions of this name.
    named = java_class(spark, "java.lang.Class").forName
    signature = java_array(spark, "java.lang.Class", [named(_UDF), named(_DATA_TYPE)])
    udf = named("org.apache.spark.sql.functions").getMethod("udf", signature)
    function = udf.invoke(None, java_array(spark, "java.lang.Object", [reader, kind.asNullable()]))
    columns = gateway().jvm.PythonUtils.toSeq([java_column(column)])
    return Column(function.asNondeterministic().apply(columns))
