import dataclasses

import pytest

from ottla.records.record import Record


def test_a_record_is_a_value() -> None:
    record = Record(1, 2, b"k", None)
    assert record == Record(1, 2, b"k", None, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.offset = 2  # type: ignore[misc]
