from pathlib import Path

import pytest
from conformance.librdkafka import Suite, verdict
from conformance.outcome import Outcome

from conformance import librdkafka

PASSED = "\x1b[32m[0001_multiobj / 1.2s] ================= Test 0001_multiobj PASSED =======\x1b[0m"
PART = "[0137_x / 12.1s] [ do_test_consume_batch_with_seek:127: PASS (12.11s) ]\n"
FAILED = (
    '### Test "0061_consumer_lag (do_test:192: lag)" failed at testcpp.h:77:() at Sat Nov 21'
    " 09:55:18 2026: ###\nConsume error: Not coordinator\n"
)


def test_a_test_passes_when_the_runner_says_so() -> None:
    assert verdict(PASSED, 0, "") == (True, "")


@pytest.mark.parametrize(
    ("output", "code", "part", "why"),
    [
        ("ALL TESTS PASSED", 0, "", "did not say that it ran"),
        (PASSED, 1, "", "ended with 1"),
        (PASSED, 124, "", "not ended after"),
        (FAILED, 134, "", "Consume error: Not coordinator"),
        (PASSED, 0, "consume_batch_with", "no sub-test matched"),
    ],
)
def test_anything_else_is_a_failure_with_its_reason(
    output: str, code: int, part: str, why: str
) -> None:
    passed, reason = verdict(output, code, part)
    assert not passed
    assert why in reason


def test_a_part_must_have_run() -> None:
    assert verdict(PART + PASSED, 0, "consume_batch_with") == (True, "")


def test_what_needs_transactions_is_left_out_by_name_and_the_rest_is_run() -> None:
    planned = list(librdkafka.tests(["0001", "0129", "0137"], transactions=False))
    left_out = [one.name for one in planned if isinstance(one, Outcome)]
    assert left_out == ["0129", "0137"]
    assert ("0001", "") in planned
    assert ("0137", "consume_batch_eof_position") in planned
    assert list(librdkafka.tests(["0129"], transactions=True)) == [("0129", "")]


def test_all_numbers_of_the_list_are_planned() -> None:
    assert len(list(librdkafka.tests([], transactions=True))) == 69


def test_one_process_runs_one_number_against_the_given_broker(tmp_path: Path) -> None:
    runner = tmp_path / "test-runner"
    runner.write_text(
        '#!/bin/sh\ncat $RDKAFKA_TEST_CONF\necho "=== Test $TESTS PASSED ==="\n'
        "echo stats > stats_${TESTS}_1.json\n"
    )
    runner.chmod(0o755)
    outcome = librdkafka.run_one(Suite(tmp_path, tmp_path), "0001", "", "127.0.0.1:1")
    assert outcome.state == "passed"
    assert "bootstrap.servers=127.0.0.1:1" in (tmp_path / "A-0001.log").read_text()
    assert not list(tmp_path.glob("stats_*"))
