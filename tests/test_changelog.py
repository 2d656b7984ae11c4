"""CHANGELOG.md describes each thing once."""

from collections import Counter
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
SAME_START = 45  # characters; a line that was changed on two branches is merged as two lines


def test_no_line_is_there_twice() -> None:
    starts = Counter(line[:SAME_START] for line in TEXT.splitlines() if line.startswith("- "))
    assert starts
    assert [start for start, times in starts.items() if times > 1] == []
