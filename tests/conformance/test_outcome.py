import json

from conformance.outcome import Outcome, as_json, summary, table


def test_a_line_says_what_became_of_a_test() -> None:
    assert Outcome("A", "0001", "passed", 1.23).line() == "passed   A  0001 (1.2 s)"
    assert Outcome("B", "x", "skipped", reason="why").line() == "skipped  B  x: why"


def test_the_closing_line_counts() -> None:
    outcomes = [
        Outcome("A", "1", "passed"),
        Outcome("A", "2", "failed"),
        Outcome("A", "3", "passed"),
    ]
    assert summary(outcomes) == "2 passed, 1 failed, 0 skipped"


def test_the_table_has_a_row_for_each_suite() -> None:
    outcomes = [
        Outcome("E", "1", "skipped", reason="why"),
        Outcome("A", "2", "failed", 1.4),
        Outcome("A", "3", "passed", 2.0),
    ]
    rows = [row.split() for row in table(outcomes).splitlines()]
    assert rows[1:] == [["A", "1", "1", "0", "3"], ["E", "0", "0", "1", "0"]]


def test_outcomes_as_json() -> None:
    (one,) = json.loads(as_json([Outcome("E", "1", "skipped", reason="why")]))
    assert one == {"suite": "E", "name": "1", "state": "skipped", "seconds": 0.0, "reason": "why"}
