"""The failures to read a partition's folder as those of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.failures import Failed
from ottla.log.inspect.errors import InspectError


@contextmanager
def inspect_failures() -> Iterator[None]:
    """Within it, an InspectError becomes Failed. Also a decorator."""
    try:
        yield
    except InspectError as error:
        raise Failed(error.message, error.hint) from error
