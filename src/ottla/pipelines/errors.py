"""What goes wrong with a pipeline, in one line with what to type instead."""

from __future__ import annotations

import importlib.util
from typing import Final

INSTALL_SPARK: Final = "pip install 'ottla[spark]'"
INSTALL_JAVA: Final = "pip install 'ottla[java]'"


class PipelineError(Exception):
    """A pipeline cannot be built or started; the message is one line that says what to do."""


class MostlyRejectedError(PipelineError):
    """The schema fits less than half of the first batch, of which nothing is written."""


def require_pyspark() -> None:
    """Raise PipelineError when PySpark is not installed: the extra `spark` is optional."""
    if importlib.util.find_spec("pyspark") is None:
        raise PipelineError(f"Pipelines need PySpark and Delta. Type: {INSTALL_SPARK}")
