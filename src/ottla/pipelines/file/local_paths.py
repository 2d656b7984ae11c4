"""What a pipeline file needs on this machine, looked at before Spark starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from ottla.pipelines.file.python_source import read_functions
from ottla.pipelines.spec.fields import nearest
from ottla.pipelines.spec.pipeline import FileSpec, FunctionSpec, PipelineSpec
from ottla.pipelines.spec.problem import Problem


def check_local_paths(spec: FileSpec) -> list[Problem]:
    """Return what is missing or in the way: files of functions, lookup tables, jars, folders.

    Paths on other file systems (s3a://, hdfs://) are Spark's to look at.
    """
    problems = list(_look_for_spark(spec))
    several = len(spec.pipelines) > 1
    for number, pipeline in enumerate(spec.pipelines):
        before = f"pipeline[{number}]." if several else ""
        problems += [Problem(f"{before}{where}", message) for where, message in _look_for(pipeline)]
    return problems


def _look_for_spark(spec: FileSpec) -> Iterator[Problem]:
    for jar in spec.spark.jars:
        if (path := _local(jar)) is not None and not path.exists():
            yield Problem("spark.jars", f"there is no file or folder {path}")
    if spec.spark.ivy_settings and not Path(spec.spark.ivy_settings).is_file():
        yield Problem("spark.ivy_settings", f"there is no file {spec.spark.ivy_settings}")


def _look_for(pipeline: PipelineSpec) -> Iterator[Problem]:
    if pipeline.transform.function is not None:
        yield from _look_for_function(pipeline.transform.function)
    for table in pipeline.transform.tables:
        path = _local(table.path)
        if path is not None and not _exists(path):
            yield Problem(f"transform.tables.{table.name}.path", f"there is no file {path}")
    checkpoint = _local(pipeline.delivery.checkpoint)
    if checkpoint is not None and checkpoint.is_file():
        yield Problem("delivery.checkpoint", f"{checkpoint} is a file; give a folder")
    target = None if pipeline.sink.folder is None else _local(pipeline.sink.folder)
    if target is not None and target.is_file():
        yield Problem("sink.target", f"{target} is a file; give a folder or a table's name")


def _look_for_function(function: FunctionSpec) -> Iterator[Problem]:
    where = "transform.function"
    try:
        tree = ast.parse(function.file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        yield Problem(where, f"{function.file} cannot be read: {reason}")
        return
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        line_of = f"{function.file}:{line}" if line else str(function.file)
        yield Problem(where, f"{line_of} is not Python: {getattr(error, 'msg', error)}")
        return
    functions = read_functions(tree)
    if function.name not in functions:
        near = nearest(function.name, list(functions))
        hint = f"; did you mean {near!r}?" if near else ""
        yield Problem(where, f"{function.file} has no function {function.name!r}{hint}")
    elif functions[function.name] != 1:
        yield Problem(
            where,
            f"{function.name} needs {functions[function.name]} arguments; it is called with one, "
            "the rows",
        )


def _local(path: str) -> Path | None:
    """Return a path on this machine's file system, None for another one."""
    parts = urlsplit(path)
    if parts.scheme in ("", "file"):
        return Path(parts.path if parts.scheme else path)
    return None


def _exists(path: Path) -> bool:
    """Tell whether a path, or one that its pattern matches, is there; Spark knows `*` and more."""
    if any(mark in str(path) for mark in "*?[{"):
        return True
    return path.exists()
