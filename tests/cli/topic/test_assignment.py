import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.topic.assignment import read_assignment


def test_an_assignment_is_read() -> None:
    assert read_assignment("1:2,2:3") == [[1, 2], [2, 3]]
    assert read_assignment("7") == [[7]]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("1:", "broker ids"),
        ("", "broker ids"),
        ("a,b", "broker ids"),
        ("-1", "broker ids"),
        ("1:2,1", "same number of replicas"),
        ("1:1", "twice"),
    ],
)
def test_an_invalid_assignment_is_rejected(text: str, named: str) -> None:
    with pytest.raises(UsageFailed, match=named):
        read_assignment(text)
