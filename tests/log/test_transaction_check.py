"""No flipped bit of a transaction index changes an answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.log.flipped_bits import flipped

from ottla.log.aborted_transactions import aborted_transactions
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log


@pytest.fixture
def aborted(bench: Any) -> Any:
    """A log with aborted and committed transactions of two producers in several segments."""
    log = bench.configure(segment_bytes=900, index_interval_bytes=100).open()
    for number in range(12):
        producer_id = 5 + number % 2
        bench.send(log, producer_id, 2, producer_epoch=0)
        bench.send(log, 7)
        bench.end(log, producer_id, commit=number % 3 == 0)
    bench.end(log, 7, commit=False)
    log.close()
    bench.end_offset = log.end_offset
    bench.files = OpenFiles(8)
    return bench


def _aborted(bench: Any) -> Any:
    log = open_log(
        str(bench.folder),
        bench.config,
        OpenFiles(8),
        now_ms=1,
        recovery_point=bench.end_offset,
        clean=True,
    )
    return [
        [
            (each.producer_id, each.first_offset)
            for each in aborted_transactions(
                log, log.read(offset, max_bytes=300), offset, log.end_offset
            )
        ]
        for offset in range(bench.end_offset)
    ]


def test_a_flipped_bit_of_a_transaction_index_changes_no_answer(aborted: Any) -> None:
    expected = _aborted(aborted)
    assert sum(map(len, expected)) > 20
    for name in aborted.names(".txnindex"):
        for _ in flipped(aborted.folder / name, every=11):
            assert _aborted(aborted) == expected


def test_a_transaction_index_that_lost_entries_is_built_again(aborted: Any) -> None:
    expected = _aborted(aborted)
    for name in aborted.names(".txnindex"):
        path = aborted.folder / name
        content = path.read_bytes()
        for changed in (b"", content[:20], bytes(len(content)), content + b"x" * 34):
            path.write_bytes(changed)
            assert _aborted(aborted) == expected
