"""What is wrong with a pipeline file: all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.pipelines.errors import PipelineError


class Problem(NamedTuple):
    """`where` is the field, such as `source.topic`; empty for the file as a whole."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class FileError(PipelineError):
    """A pipeline file cannot be used. `problems` has at least one."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__(f"{file}: " + "; ".join(map(str, problems)))
