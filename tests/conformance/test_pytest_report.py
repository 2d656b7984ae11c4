from pathlib import Path

from conformance.pytest_report import outcomes_of

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
    found = {one.name: one for one in outcomes_of(file, "F")}
    assert [one.state for one in found.values()] == ["passed", "failed", "failed", "skipped"]
    assert {one.suite for one in found.values()} == {"F"}
    assert found["test_acls"].reason == "no authorizer"
    assert found["test_group_admin"].seconds == 1.5
