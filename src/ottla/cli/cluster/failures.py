"""The failures of a cluster for development as those of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.screen import printable
from ottla.devcluster.errors import DevClusterError, OptionError


@contextmanager
def cluster_failures() -> Iterator[None]:
    """Within it, a DevClusterError becomes Failed, an OptionError UsageFailed."""
    try:
        yield
    except DevClusterError as error:
        failed = UsageFailed if isinstance(error, OptionError) else Failed
        raise failed(printable(error.message), error.hint) from None
