"""The classes of this room: what Spark calls for each record, and Python would take too long for,
and what sets a private field of Delta, which Python cannot.

They are compiled by Janino, the compiler that each Spark has for the code of its plans, so they fit
each Spark and there is no jar to build. Executors get them as a jar of the context, which is kept
in the cache folder:

    classes-<Spark's version>-<digest of the sources>.jar

It is written as `<name>.<pid>.new` and renamed: a kill leaves that file, of a few kB. A jar that a
loss of power cut off is made again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ottla.pipelines.spark import cache
from ottla.pipelines.spark.jvm.attributes import (
    gateway,
    java_class,
    java_context,
    temporary_folder,
)
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PACKAGE: Final = "ottla.pipelines"
_COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
_ROOM: Final = Path(__file__).parent
_LOADERS: Final[WeakKeyDictionary[SparkContext, Any]] = WeakKeyDictionary()
"""The driver's loader of the classes, for each context that has their jar."""


def has_compiler(spark: SparkSession) -> bool:
    """Tell whether the classes can be made in a session."""
    return spark.sparkContext in _LOADERS or first_class(spark, [_COMPILER]) is not None


def new_object(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """Return an object of a class of this room, by the name of its file, for Spark's tasks."""
    (constructor,) = _loader_of(spark).loadClass(f"{_PACKAGE}.{name}").getConstructors()
    return constructor.newInstance(java_array(spark, "java.lang.Object", arguments))


def java_array(spark: SparkSession, name: str, values: Any) -> Any:
    """Return a Java array of objects of a class."""
    found = gateway().new_array(java_class(spark, name), len(values))
    for number, value in enumerate(values):
        found[number] = value
    return found


def _loader_of(spark: SparkSession) -> Any:
    context = spark.sparkContext
    if (found := _LOADERS.get(context)) is None:
        address = _jar(spark).as_uri()
        java_context(context).addJar(address)
        parent = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
        urls = java_array(spark, "java.net.URL", [java_class(spark, "java.net.URL")(address)])
        found = java_class(spark, "java.net.URLClassLoader")(urls, parent)
        _LOADERS[context] = found
    return found


def _jar(spark: SparkSession) -> Path:
    """Return the jar of the classes, which is made where the cache does not have it."""
    sources = [path.read_text("utf-8") for path in sorted(_ROOM.glob("*.java"))]
    digest = hashlib.sha256("".join(sources).encode()).hexdigest()[:16]
    name = f"classes-{spark.version}-{digest}.jar"
    folder = cache.folder(os.environ)
    if zipfile.is_zipfile(kept := folder / name):
        return kept
    codes: dict[str, bytes] = {}
    for source in sources:
        compiler = java_class(spark, _COMPILER)()
        compiler.cook(source)
        codes |= {name: bytes(code) for name, code in compiler.getBytecodes().items()}
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
