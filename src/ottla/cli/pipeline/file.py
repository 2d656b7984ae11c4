"""A pipeline file as the commands take it; its problems are listed, a line each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ottla.cli.failures import UsageFailed, unknown
from ottla.pipelines.file.local_paths import check_local_paths
from ottla.pipelines.file.read import read_file
from ottla.pipelines.spec.pipeline import FileSpec
from ottla.pipelines.spec.problem import FileError, Problem


def checked_file(file: Path, only: Sequence[str]) -> FileSpec:
    """Read a file and check what it needs on this machine. Raises UsageFailed."""
    spec = _chosen(_read(file, os.environ), only)
    problems = check_local_paths(spec)
    if problems:
        raise listed(file, problems)
    return spec


def readable_file(file: Path, only: Sequence[str]) -> FileSpec:
    """Read a file for what the broker knows of it: passwords for storage may be missing here.

    Raises UsageFailed.
    """
    try:
        return _chosen(read_file(file, os.environ), only)
    except FileError as error:
        needed = [
            problem
            for problem in error.problems
            if "environment variable" not in problem.message or "source" in problem.where.split(".")
        ]
        if needed:
            raise listed(file, needed) from error
    return _chosen(_read(file, AllSet(os.environ)), only)


class AllSet(dict[str, str]):
    """An environment in which every variable is set: those that are not, to a placeholder."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: str | None = None) -> str:  # type: ignore[override]
        # An empty text would be a problem of its own, and so would an address without a port.
        return super().get(name, "unset:1")


def listed(file: Path, problems: Iterable[Problem]) -> UsageFailed:
    """All problems of a file as one failure, a line each."""
    lines = [str(problem) for problem in problems]
    if len(lines) == 1:
        return UsageFailed(f"{file}: {lines[0]}")
    return UsageFailed(f"{file} has {len(lines)} problems.", "\n  ".join(lines))


def _read(file: Path, environ: Mapping[str, str]) -> FileSpec:
    try:
        return read_file(file, environ)
    except FileError as error:
        raise listed(file, error.problems) from error


def _chosen(spec: FileSpec, only: Sequence[str]) -> FileSpec:
    if not only:
        return spec
    names = [pipeline.name for pipeline in spec.pipelines]
    for name in only:
        if name not in names:
            raise unknown("pipeline", name, names, f"{spec.file.name} has: {', '.join(names)}")
    chosen = tuple(pipeline for pipeline in spec.pipelines if pipeline.name in only)
    return replace(spec, pipelines=chosen)
