"""Records for the tests of batches."""

import pytest
from hypothesis import strategies as st

from ottla.records.record import Record


def records_strategy(largest: int = 30) -> st.SearchStrategy[list[Record]]:
    """Lists of records as producers may send them, numbered from 0."""
    some_bytes = st.none() | st.binary(max_size=60)
    record = st.builds(
        Record,
        offset=st.just(0),
        timestamp_ms=st.integers(-1, 2**45),
        key=some_bytes,
        value=some_bytes,
        headers=st.lists(st.tuples(st.text(max_size=8), some_bytes), max_size=3).map(tuple),
    )
    numbered = st.lists(record, min_size=1, max_size=largest)
    return numbered.map(
        lambda records: [
            Record(number, each.timestamp_ms, each.key, each.value, each.headers)
            for number, each in enumerate(records)
        ]
    )


@pytest.fixture(scope="session")
def records() -> st.SearchStrategy[list[Record]]:
    return records_strategy()


@pytest.fixture
def three_records() -> list[Record]:
    return [
        Record(0, 1_000, b"a", b"one"),
        Record(1, 1_005, b"b", None),
        Record(2, 1_003, None, b"three", (("h", b"x"), ("n", None))),
    ]
