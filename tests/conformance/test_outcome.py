from conformance.outcome import Outcome, summary


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
