"""Running the pipelines of a file, without Spark."""

import logging
import subprocess
import sys

import pytest

from ottla.cli import pipeline_run
from ottla.cli.pipeline_run import end_at_once, told_log


def test_what_pipelines_log_is_told_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    logger = logging.getLogger("ottla.pipelines")
    with told_log(lines):
        logger.warning("%s does not answer", "localhost:9092")
        logger.info("a detail")
    logger_handlers = len(logger.handlers)
    with told_log(lines):
        pass
    assert lines == ["localhost:9092 does not answer"]
    assert len(logger.handlers) == logger_handlers
    assert capsys.readouterr().err == ""


def test_the_end_at_once_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    killed: list[bool] = []
    monkeypatch.setattr(pipeline_run, "kill_spark", lambda: killed.append(True))
    end_at_once(130, left.append)
    assert (left, killed) == ([130], [True])


def test_the_command_line_starts_without_pyspark() -> None:
    code = (
        "import sys; from ottla.cli.main import main\n"
        "try: main(['pipeline', '--help'])\n"
        "finally: print({'pyspark', 'confluent_kafka'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "set()\n"
