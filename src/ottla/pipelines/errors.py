"""What goes wrong with a pipeline, in one line with what to type instead."""

from __future__ import annotations

import importlib.util
import re
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


# What Spark's JVM says when its parts do not belong together, and what it means. The first
# pattern that is found wins. `{pair}` is the pair of versions that would work.
_FAILURES: Final = (
    (
        r"org[./]apache[./]spark[./]sql[./]catalyst[./]SQLConfHelper",
        "Delta's jar was built for another Spark or Scala (its class SQLConfHelper is not in "
        "this Spark). {pair}",
    ),
    (
        r"(NoSuchMethodError|NoClassDefFoundError|AbstractMethodError|NoSuchFieldError|"
        r"IncompatibleClassChangeError)(?s:.){0,400}(io[./]delta|spark[./]sql[./]delta)|"
        r"not defined in Spark 3",
        "Delta's jar was built for another Spark. {pair}",
    ),
    (
        r"UnsupportedClassVersionError",
        "A jar was built for a newer Java than the one that runs Spark. Use Java 17 or 21, or "
        f"type: {INSTALL_JAVA}",
    ),
    (
        r"unresolved dependency|JAVA_GATEWAY_EXITED",
        "Spark did not start; its output says why. If it names an unresolved dependency, Maven "
        "Central does not have that version, or this machine does not reach it: then pass "
        "jars=[...] or ivy_settings='ivysettings.xml' to session(). {pair}",
    ),
    (
        r"io\.delta\.sql\.DeltaSparkSessionExtension|find the data source: delta|DeltaCatalog",
        "Delta's jars are not on Spark's class path. On AWS Glue give the job "
        "'--datalake-formats delta'; elsewhere let session() start Spark. {pair}",
    ),
    (
        r"org\.apache\.spark\.sql\.kafka010|find the data source: kafka",
        "Spark's Kafka source is not on its class path: add the package "
        "org.apache.spark:spark-sql-kafka-0-10_2.13 in Spark's own version",
    ),
)


def explain(words: str, pair: str) -> str | None:
    """Return the sentence for a well-known failure of Spark's JVM, or None.

    `words` is what the exception says, with its causes; `pair` the versions that would work.
    """
    for pattern, sentence in _FAILURES:
        if re.search(pattern, words):
            return sentence.format(pair=pair).strip()
    return None
