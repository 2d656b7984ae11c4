"""What pipelines log while a session shows them."""

import logging

import pytest

from ottla.pipelines.program.notices import collect_log


def test_what_pipelines_log_is_collected_and_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines: list[str] = []
    logger = logging.getLogger("ottla.pipelines")
    with collect_log(lines):
        logger.warning("%s does not answer", "localhost:9092")
        logger.info("a detail")
    logger_handlers = len(logger.handlers)
    with collect_log(lines):
        pass
    assert lines == ["localhost:9092 does not answer"]
    assert len(logger.handlers) == logger_handlers
    assert capsys.readouterr().err == ""
