"""A failure as the user gets it: one line that names the file with the trace."""

import re
from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.known import About
from ottla.pipelines.run.reported import report, report_exception, words_for

ABOUT = About(query="flights", target="/lake/flights")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path))


def test_the_line_names_the_file_with_the_trace(tmp_path: Path) -> None:
    error = report([Cause("x.Why", "reason.")], "the trace", ABOUT, "flights stopped", "Gave up")

    match = re.fullmatch(
        r"flights stopped: Why: reason. Gave up \(Spark's trace: (.*)\)", str(error)
    )
    assert match is not None
    text = Path(match[1]).read_text()
    assert text.startswith("flights stopped: Why: reason. Gave up\n")
    assert text.endswith("the trace")


def test_without_a_folder_there_is_the_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path / "file"))

    assert str(report([Cause("x.Why", "reason")], "trace", ABOUT)) == "Why: reason"


def test_our_own_error_is_not_touched() -> None:
    error = PipelineError("words")

    assert report_exception(error, ABOUT, "flights stopped") is error
    assert str(report_exception(error, ABOUT, "", "Gave up")) == "words. Gave up"


def test_an_error_of_python_keeps_its_words() -> None:
    try:
        raise KeyError("name")
    except KeyError as error:
        said = str(report_exception(error, ABOUT, "flights stopped"))

    assert said.startswith(f"flights stopped: KeyError: 'name' ({__file__}, line ")
    assert "(trace: " in said


def test_jars_that_do_not_fit_have_their_own_sentence() -> None:
    cause = Cause("org.apache.spark.SparkException", "Failed to find the data source: kafka.")

    assert "spark-sql-kafka-0-10" in words_for([cause], ABOUT)

    missing = "java.lang.NoClassDefFoundError: org/apache/spark/sql/kafka010/KafkaSourceProvider"
    assert "spark-sql-kafka-0-10" in words_for([Cause("x.Error", missing)], ABOUT)


def test_an_exception_of_sparks_kafka_source_is_no_missing_jar() -> None:
    cause = Cause(
        "org.apache.spark.sql.kafka010.KafkaIllegalStateException",
        "Some data may have been lost. Reason: Added partition t-1 starts from 3 instead of 0.",
    )

    assert "Records that were not read yet are no longer on" in words_for([cause], ABOUT)
