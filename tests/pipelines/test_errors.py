"""Well-known failures of Spark become sentences; PySpark is optional until it is used."""

import subprocess

import pytest

from ottla.pipelines.failures.sentences import explain

PAIR = "This pair works: ..."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "java.lang.ClassNotFoundException: org.apache.spark.sql.catalyst.SQLConfHelper",
            "another Spark or Scala",
        ),
        (
            "java.lang.NoClassDefFoundError: org/apache/spark/sql/catalyst/SQLConfHelper",
            "another Spark or Scala",
        ),
        (
            "java.lang.NoSuchMethodError: 'void x()'\n\tat io.delta.sql.Extension.apply",
            "another Spark",
        ),
        ("UnsupportedOperationException: This method is not defined in Spark 3.5", "another Spark"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "ivy_settings="),
        ("[JAVA_GATEWAY_EXITED] unresolved dependency: x: not found", PAIR),
        ("Failed to find the data source: delta.", "--datalake-formats delta"),
        ("Failed to find the data source: kafka.", "spark-sql-kafka-0-10"),
        ("UnsupportedClassVersionError: class file version 65.0", "pip install 'ottla[java]'"),
    ],
)
def test_known_failures_become_sentences(words: str, sentence: str) -> None:
    said = explain(words, PAIR)

    assert said is not None
    assert sentence in said
    assert "\n" not in said


def test_unknown_failure_is_left_to_speak_for_itself() -> None:
    assert explain("java.lang.OutOfMemoryError: Java heap space", PAIR) is None


@pytest.mark.parametrize(
    "call",
    [
        "session('app')",
        "topic(None, 't', bootstrap_servers='localhost:9092')",
        "to_delta(None, './t', checkpoint='./c')",
        "report_progress(None, bootstrap_servers='localhost:9092', group='g')",
    ],
)
def test_without_pyspark_each_call_says_what_to_type(
    call: str, without_packages: list[str]
) -> None:
    start = without_packages.pop()
    script = f"{start}\nfrom ottla.pipelines import *\n{call}"

    done = subprocess.run([*without_packages, script], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("Type: pip install 'ottla[spark]'")
