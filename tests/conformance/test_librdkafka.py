from pathlib import Path

import pytest
from conformance.__main__ import chosen
from conformance.librdkafka import Suite, verdict

from conformance import librdkafka

PASSED = "\x1b[32m[0001_multiobj / 1.2s] ================= Test 0001_multiobj PASSED =======\x1b[0m"
FAILED = (
    '### Test "0061_consumer_lag (do_test:192: lag)" failed at testcpp.h:77:() at Sat Nov 21'
    " 09:55:18 2026: ###\nConsume error: Not coordinator\n"
)


def test_a_test_passes_when_the_runner_says_so() -> None:
    assert verdict(PASSED, 0) == (True, "")


@pytest.mark.parametrize(
    ("output", "code", "why"),
    [
        ("ALL TESTS PASSED", 0, "did not say that it ran"),
        (PASSED, 1, "ended with 1"),
        (PASSED, 124, "not ended in time"),
        (FAILED, 134, "Consume error: Not coordinator"),
    ],
)
def test_anything_else_is_a_failure_with_its_reason(output: str, code: int, why: str) -> None:
    passed, reason = verdict(output, code)
    assert not passed
    assert why in reason


def test_chosen_numbers() -> None:
    assert librdkafka.tests(["0129", "0001"], 1, is_secured=False) == ["0001", "0129"]


def test_topics_with_three_replicas_need_three_brokers() -> None:
    assert librdkafka.tests(["0103", "0001"], 3, is_secured=False) == ["0001", "0103"]
    with pytest.raises(ValueError, match="0103 of suite A needs three brokers"):
        librdkafka.tests(["0103", "0001"], 1, is_secured=False)


def test_all_numbers_of_the_list_are_planned() -> None:
    plain, secured = (
        [len(librdkafka.tests([], brokers, is_secured=is_secured)) for brokers in (1, 3)]
        for is_secured in (False, True)
    )
    assert (plain, secured) == ([152, 153], [138, 144])


def test_what_is_for_secured_brokers_needs_them() -> None:
    assert librdkafka.tests(["0081"], 1, is_secured=True) == ["0081"]
    with pytest.raises(ValueError, match="0081 of suite A needs secured brokers"):
        librdkafka.tests(["0081"], 1, is_secured=False)
    with pytest.raises(ValueError, match=r"0135\.do_test of suite A needs three brokers"):
        librdkafka.tests(["0135.do_test"], 1, is_secured=True)
    numbers = librdkafka.tests([], 3, is_secured=True)
    assert {"0018.do_test", "0018.do_test-consumer", "0142.do_test_consumer"} <= set(numbers)
    assert not {"0018", "0018-consumer"} & set(numbers)


def test_a_part_of_a_test_and_its_settings(tmp_path: Path) -> None:
    runner = tmp_path / "test-runner"
    runner.write_text(
        '#!/bin/sh\ncat $RDKAFKA_TEST_CONF\necho "$TESTS $SUBTESTS $KAFKA_PATH $*"\n'
        'echo "=== Test $TESTS PASSED ==="\n'
    )
    runner.chmod(0o755)
    client, given = {"security.protocol": "sasl_ssl"}, {"KAFKA_PATH": "/kafka"}
    suite = Suite(tmp_path, tmp_path)
    outcome = librdkafka.run_one(suite, "0142.do_test_consumer", "a:1", client, given, "H")
    assert (outcome.suite, outcome.state) == ("H", "passed")
    said = (tmp_path / "H-0142.do_test_consumer.log").read_text()
    assert "security.protocol=sasl_ssl\n0142 do_test_consumer: /kafka -E -L -p1\n" in said
    librdkafka.run_one(suite, "0128", "a:1")
    assert "0128   -E -l -p1\n" in (tmp_path / "A-0128.log").read_text()


def test_a_long_test_runs_in_parts(tmp_path: Path) -> None:
    part = "0174.do_test_8p_2c"
    assert chosen(f"A:{part}") == {"A": [part]}
    with pytest.raises(ValueError, match="suite A has no '0175x"):
        chosen("A:0175x.do_test")
    assert librdkafka.tests([part, "0001"], 3, is_secured=False) == ["0001", part]
    with pytest.raises(ValueError, match="needs three brokers"):
        librdkafka.tests(["0103.do_test"], 1, is_secured=False)
    runner = tmp_path / "test-runner"
    runner.write_text(
        '#!/bin/sh\ncat $RDKAFKA_TEST_CONF\necho "$TEST_KAFKA_VERSION $TESTS $SUBTESTS"\n'
        'echo "=== Test $TESTS PASSED ==="\n'
    )
    runner.chmod(0o755)
    assert librdkafka.run_one(Suite(tmp_path, tmp_path), part, "a:1").state == "passed"
    said = (tmp_path / f"A-{part}.log").read_text()
    assert "test.timeout.multiplier=3\n4.3.0 0174 do_test_8p_2c:\n" in said
    assert librdkafka.whole("0018.do_test-consumer") == "0018-consumer"


def test_one_process_runs_one_number_against_the_given_broker(tmp_path: Path) -> None:
    runner = tmp_path / "test-runner"
    runner.write_text(
        '#!/bin/sh\ncat $RDKAFKA_TEST_CONF\necho "=== Test $TESTS PASSED ==="\n'
        "echo stats > stats_${TESTS}_1.json\n"
    )
    runner.chmod(0o755)
    outcome = librdkafka.run_one(Suite(tmp_path, tmp_path), "0001", "127.0.0.1:1")
    assert outcome.state == "passed"
    assert "bootstrap.servers=127.0.0.1:1" in (tmp_path / "A-0001.log").read_text()
    assert not list(tmp_path.glob("stats_*"))


def test_a_number_in_a_consumer_group(tmp_path: Path) -> None:
    runner = tmp_path / "test-runner"
    runner.write_text(
        '#!/bin/sh\necho "$TEST_CONSUMER_GROUP_PROTOCOL"\necho "=== Test $TESTS PASSED ==="\n'
    )
    runner.chmod(0o755)
    for number, protocol in (("0018", "classic"), ("0018-consumer", "consumer")):
        outcome = librdkafka.run_one(Suite(tmp_path, tmp_path), number, "127.0.0.1:1")
        assert (outcome.name, outcome.state) == (number, "passed")
        said = (tmp_path / f"A-{number}.log").read_text()
        assert said == f"{protocol}\n=== Test 0018 PASSED ===\n"
