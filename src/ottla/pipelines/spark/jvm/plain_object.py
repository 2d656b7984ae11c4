"""`PlainObject.java` as a Spark column: JSON objects that need no closer look, read at once.

Spark's from_json makes a parser for each text, and does not say what it changed or left out. The
class reads the usual objects in a quarter of the time, and leaves all others to from_json.

It is compiled by Janino, the compiler that each Spark has for the code of its plans, so it fits
each Spark and there is no jar to build. Executors get it as a jar of the context, which is kept in
the cache folder:

    plain-object-<Spark's version>-<digest of the source>.jar   its two classes

It is written under another name and renamed. One that a crash cut off is made again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ottla.pipelines.spark import cache
from ottla.pipelines.spark.jvm.attributes import (
    gateway,
    java_class,
    java_column,
    java_context,
    temporary_folder,
)
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType, StructType

SETTING: Final = "spark.ottla.plainObjects.enabled"
"""The setting of a session; "false" leaves all texts to from_json."""
MAX_FIELDS: Final = 200
"""At every depth: a field that is not where the schema has it is looked for among all."""
_DATA_TYPE: Final = "org.apache.spark.sql.types.DataType"
_UDF: Final = "org.apache.spark.sql.api.java.UDF1"
_CLASS: Final = "ottla.pipelines.PlainObject"
_COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
_SOURCE: Final = Path(__file__).with_name("PlainObject.java")
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
_CLASSES: Final[WeakKeyDictionary[SparkContext, Any]] = WeakKeyDictionary()
"""The class in the driver of each context that has its jar."""


def plain_object(spark: SparkSession, column: Column, schema: StructType) -> Column | None:
    """Return the object in a column of bytes, null where from_json is to read it.

    None: the schema has what the class does not read, or the session has not the class. Spark does
    not compute the column again for whoever asks for it in another step of the plan.
    """
    kinds = list(_kinds(schema))
    if len(kinds) > MAX_FIELDS or not all(map(_is_read, kinds)):
        return None
    if not len(schema.fields) or spark.conf.get(SETTING, "true") == "false":
        return None
    has_times = any(kind.simpleString() in _TIMES for kind in kinds)
    if has_times and spark.conf.get(_PARSER_POLICY) == "LEGACY":
        return None  # which cuts the digits of a second
    if first_class(spark, [_COMPILER]) is None:
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
    constructor = _class_of(spark).getConstructors()[0]
    reader = constructor.newInstance(_array(spark, "java.lang.Object", [kind]))
    # By reflection: py4j would choose another one of the functions of this name.
    named = java_class(spark, "java.lang.Class").forName
    signature = _array(spark, "java.lang.Class", [named(_UDF), named(_DATA_TYPE)])
    udf = named("org.apache.spark.sql.functions").getMethod("udf", signature)
    function = udf.invoke(None, _array(spark, "java.lang.Object", [reader, kind.asNullable()]))
    columns = gateway().jvm.PythonUtils.toSeq([java_column(column)])
    return Column(function.asNondeterministic().apply(columns))


def _array(spark: SparkSession, name: str, values: list[Any]) -> Any:
    found = gateway().new_array(java_class(spark, name), len(values))
    for number, value in enumerate(values):
        found[number] = value
    return found


def _class_of(spark: SparkSession) -> Any:
    context = spark.sparkContext
    if (found := _CLASSES.get(context)) is None:
        jar = _jar(spark)
        java_context(context).addJar(jar.as_uri())
        loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
        urls = _array(spark, "java.net.URL", [java_class(spark, "java.net.URL")(jar.as_uri())])
        found = java_class(spark, "java.net.URLClassLoader")(urls, loader).loadClass(_CLASS)
        _CLASSES[context] = found
    return found


def _jar(spark: SparkSession) -> Path:
    """Return the jar of the class, which is made where the cache does not have it."""
    source = _SOURCE.read_text("utf-8")
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    name = f"plain-object-{spark.version}-{digest}.jar"
    folder = cache.folder(os.environ)
    if zipfile.is_zipfile(kept := folder / name):
        return kept
    compiler = java_class(spark, _COMPILER)()
    compiler.cook(source)
    codes = {name: bytes(code) for name, code in compiler.getBytecodes().items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"{name}.{os.getpid()}.new"
        _write(new, codes)
        return new.replace(kept)
    except OSError:  # the folder cannot be written, or is full
        kept = temporary_folder(spark.sparkContext) / name
        _write(kept, codes)
        return kept


def _write(jar: Path, codes: dict[str, bytes]) -> None:
    with zipfile.ZipFile(jar, "w") as entries:
        for name, code in codes.items():
            entries.writestr(f"{name.replace('.', '/')}.class", code)
