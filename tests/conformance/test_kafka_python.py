from pathlib import Path

from conformance import kafka_python

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="test_group_admin" time="1.5"/>
<testcase classname="a" name="test_acls" time="0.1">
  <failure message="no authorizer&#10;more"/></testcase>
<testcase classname="a" name="test_broken" time="0.1"><error message="fixture failed"/></testcase>
<testcase classname="a" name="test_sasl" time="0"><skipped message="external"/></testcase>
</testsuite></testsuites>"""


def test_pytests_report_becomes_one_outcome_a_test(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    file.write_text(REPORT)
    found = {one.name: one for one in kafka_python.outcomes_of(file)}
    assert [one.state for one in found.values()] == ["passed", "failed", "failed", "skipped"]
    assert found["test_acls"].reason == "no authorizer"
    assert found["test_group_admin"].seconds == 1.5


def test_transactions_are_left_out_until_they_are_asked_for() -> None:
    assert "test_transactional_producer_offsets" in kafka_python.left_out(False)
    assert "test_transactional_producer_offsets" not in kafka_python.left_out(True)
    assert "test_group" in kafka_python.left_out(True)


def fake_suite(folder: Path, script: str) -> kafka_python.Suite:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return kafka_python.Suite(folder, python, folder)


def test_a_run_that_leaves_no_report_is_a_failure(tmp_path: Path) -> None:
    suite = fake_suite(tmp_path, "echo collection failed; exit 4")
    outcomes = list(kafka_python.run(suite, "127.0.0.1", 1, ["test_group_admin"], False))
    assert [one.state for one in outcomes] == ["failed"]
    assert "collection failed" in (tmp_path / "B.log").read_text()


def test_the_tests_are_pointed_at_the_broker(tmp_path: Path) -> None:
    suite = fake_suite(tmp_path, 'echo "$KAFKA_URI"; exit 4')
    list(kafka_python.run(suite, "127.0.0.1", 1234, [], False))
    assert "kafka://127.0.0.1:1234" in (tmp_path / "B.log").read_text()
