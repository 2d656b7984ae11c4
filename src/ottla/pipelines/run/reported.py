"""A failure as the user sees it: one line, and Spark's trace in a file that the line names."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.cause import Cause, one_line
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.sentences import explain, sentence_for
from ottla.pipelines.failures.trace_file import write_trace
from ottla.pipelines.spark.jvm.causes import causes_of, is_of_jvm, trace_of
from ottla.pipelines.spark.jvm.jar_versions import hadoop_version
from ottla.pipelines.spark.jvm.process import process_ended


def words_for(causes: Sequence[Cause], about: About) -> str:
    """Return the sentence for a chain of causes."""
    words = "\n".join(f"{cause.kind}: {cause.message}" for cause in causes)
    # The jars of Hadoop's file systems must have the version of Spark's Hadoop.
    hadoop = hadoop_version() or about.hadoop
    return explain(words, "") or sentence_for(causes, replace(about, hadoop=hadoop))


def report(
    causes: Sequence[Cause], trace: str, about: About, before: str = "", after: str = ""
) -> PipelineError:
    """Return the error for a chain of causes; writes the trace to a file.

    `before`: words that begin the line, such as "flights stopped in batch 7"; `after`: a sentence
    that ends it.
    """
    text = _joined(before, words_for(causes, about), after)
    header = f"{text}\n\nquery: {about.query}\ntarget: {about.target}\n\n"
    file = write_trace(os.environ, about.query, header + trace, datetime.now())
    return PipelineError(text if file is None else f"{text} (Spark's trace: {file})")


def report_exception(
    error: BaseException, about: About, before: str = "", after: str = ""
) -> PipelineError:
    """Return the error for an exception: a PipelineError unchanged, Python's in its own words."""
    if isinstance(error, PipelineError):
        return PipelineError(_joined("", str(error), after)) if after else error
    causes = causes_of(error)
    if _is_of_spark(error):
        return report(causes, trace_of(error), about, before, after)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = _joined(before, one_line(f"{type(error).__name__}: {error}{where}"), after)
    file = write_trace(os.environ, about.query, trace_of(error), datetime.now())
    return PipelineError(text if file is None else f"{text} (trace: {file})")


@contextlib.contextmanager
def reported(about: About) -> Iterator[None]:
    """Turn what Spark raises in the block into a PipelineError."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        is_silent = isinstance(error, ConnectionError | Py4JNetworkError)
        if ended := process_ended(is_silent=is_silent):
            raise report([ended], trace_of(error), about) from None
        if isinstance(error, ConnectionError):
            raise
        raise report_exception(error, about) from None


def _joined(before: str, text: str, after: str) -> str:
    line = f"{before}: {text}" if before else text
    return f"{line.rstrip('.')}. {after}" if after else line


def _is_of_spark(error: BaseException) -> bool:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return is_of_jvm(error) or isinstance(error, Py4JError | PySparkException)
