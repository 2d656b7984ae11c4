"""The transaction index of a large segment is built again off the event loop."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.log.rebuilding import open_rebuilding
from tests.turns import calls_of

from ottla.log.aborted_transactions import aborted_transactions
from ottla.log.errors import RebuildingError
from ottla.log.index_rebuild import MAX_AT_ONCE_BYTES
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.retention import take_out
from ottla.log.task import Rebuild
from ottla.log.transaction_check import MAX_CHECKED
from ottla.log.transaction_index import ENTRY, AbortedTransaction
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.record import Record

PRODUCERS = 5


class Aborted:
    """A log of three large segments with aborted transactions, of which some begin in an earlier
    segment; cleanly closed.
    """

    def __init__(self, bench: Any) -> None:
        self.bench = bench.configure(segment_bytes=MAX_AT_ONCE_BYTES + 100_000)
        log = bench.open()
        number = 0
        while len(log.segments) < 3 or log.active.size_bytes < MAX_AT_ONCE_BYTES:
            producer = number % PRODUCERS
            bench.send(log, producer, [Record(0, 1_000, None, b"v" * 3_000)])
            if number % 7 == 0:
                bench.end(log, producer, commit=number % 2 == 0)
            number += 1
        for producer in range(PRODUCERS):
            bench.end(log, producer, commit=False)
        log.close()
        self.end = log.end_offset
        self.rebuilds: list[Rebuild] = []
        assert len(log.segments) == 3
        self.sound = {path.name: path.read_bytes() for path in self.bench.folder.glob("*.txnindex")}
        assert len(self.sound) == 3
        self.listed = self.all(self.open())

    def path(self, number: int) -> Path:
        path: Path = self.bench.folder / sorted(self.sound)[number]
        return path

    def open(self) -> Log:
        return open_rebuilding(self.bench, self.end, self.rebuilds)

    def finish(self) -> None:
        rebuild = self.rebuilds.pop()
        rebuild.run()
        rebuild.apply()
        rebuild.end()

    def of(self, log: Log, number: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap the segment's first batches."""
        offset = log.segments[number].base_offset
        found = log.read(offset, max_bytes=100_000)
        for _ in range(4):
            try:
                return aborted_transactions(log, found, offset, self.end)
            except RebuildingError:
                self.finish()
        return aborted_transactions(log, found, offset, self.end)

    def all(self, log: Log) -> list[list[AbortedTransaction]]:
        return [self.of(log, number) for number in range(3)]


@pytest.fixture
def aborted(bench: Any) -> Aborted:
    return Aborted(bench)


def _wrong(path: Path) -> None:
    entries = [list(each) for each in ENTRY.iter_unpack(path.read_bytes())]
    entries[1][2] += 1  # its first offset
    path.write_bytes(b"".join(ENTRY.pack(*each) for each in entries))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a wrong entry": _wrong,
    "a folder": _folder,
}


@pytest.mark.parametrize("with_snapshots", [True, False])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_readers_get_the_same_after_the_rebuild(
    aborted: Aborted, damage: Any, with_snapshots: bool
) -> None:
    log = aborted.open()
    for number in range(3):
        damage(aborted.path(number))
    if not with_snapshots:
        for name in aborted.bench.names(".snapshot"):
            (aborted.bench.folder / name).unlink()
    assert aborted.all(log) == aborted.listed
    assert {path.name: path.read_bytes() for path in aborted.bench.folder.glob("*.txnindex")} == (
        aborted.sound
    )
    assert not aborted.bench.names(".rebuilt")


def test_the_loop_reads_no_batches(aborted: Aborted, caplog: pytest.LogCaptureFixture) -> None:
    log = aborted.open()
    aborted.path(1).write_bytes(b"")

    def look() -> None:
        with pytest.raises(RebuildingError):
            log.check_transaction_index(1)

    look()
    _, calls = calls_of(look)
    (rebuild,) = aborted.rebuilds
    rebuild.run()
    _, calls_after = calls_of(rebuild.apply)
    rebuild.end()
    assert calls + calls_after < 300
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("the indexes of ")
    log.check_transaction_index(1)


def test_nothing_is_appended_or_cut_meanwhile(aborted: Aborted) -> None:
    log = aborted.open()
    _wrong(aborted.path(2))
    for write in (
        lambda: aborted.bench.append(log),
        lambda: aborted.bench.append(log),
        lambda: truncate_to(log, aborted.end - 1, now_ms=1),
    ):
        with pytest.raises(RebuildingError):
            write()
    assert len(aborted.rebuilds) == 1
    aborted.finish()
    first = aborted.bench.send(log, 1).first_offset
    aborted.bench.end(log, 1, commit=False)
    assert first == aborted.end
    log.close()
    content = aborted.path(2).read_bytes()
    assert content[: -ENTRY.size] == aborted.sound[aborted.path(2).name]
    assert ENTRY.unpack(content[-ENTRY.size :])[2:4] == (first, first + 1)


def test_a_cut_waits_for_the_index(aborted: Aborted) -> None:
    log = aborted.open()
    to = log.active.base_offset + 20
    expected = [each for each in log.active.txn_index.entries() if each.last_offset < to]  # type: ignore[union-attr]
    aborted.path(2).write_bytes(aborted.path(2).read_bytes()[:-5])
    with pytest.raises(RebuildingError):
        truncate_to(log, to, now_ms=1)
    aborted.finish()
    truncate_to(log, to, now_ms=1)
    assert log.end_offset == to
    log.close()
    stored = [AbortedTransaction(*each[1:]) for each in ENTRY.iter_unpack(_content(aborted, 2))]
    assert stored == expected


def _content(aborted: Aborted, number: int) -> bytes:
    path = aborted.path(number)
    return path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("has_run", [False, True])
def test_what_other_segments_had_meanwhile_is_not_taken(aborted: Aborted, has_run: bool) -> None:
    """Retention came first: the transactions that had begun there are read from a snapshot, or not
    at all.
    """
    log = aborted.open()
    aborted.path(1).write_bytes(b"")
    for name in aborted.bench.names(".snapshot"):
        (aborted.bench.folder / name).unlink()
    with pytest.raises(RebuildingError):
        log.check_transaction_index(1)
    if has_run:
        aborted.rebuilds[0].run()
    take_out(log, [log.segments[0]])
    aborted.finish()
    assert aborted.path(1).read_bytes() == b""
    with pytest.raises(RebuildingError):
        log.check_transaction_index(0)
    aborted.finish()
    log.check_transaction_index(0)
    assert not aborted.bench.names(".rebuilt")


def test_a_segment_without_aborted_transactions_has_no_file_afterwards(bench: Any) -> None:
    log = bench.configure(segment_bytes=MAX_AT_ONCE_BYTES + 100_000).open()
    while len(log.segments) < 2:
        bench.append(log, [Record(0, 1_000, None, b"v" * 3_000)])
    log.close()
    path = bench.folder / f"{0:020d}.txnindex"
    path.write_bytes(ENTRY.pack(0, 7, 3, 5, 6))
    files = OpenFiles(8)
    rebuilds: list[Any] = []
    files.rebuild_later = rebuilds.append
    again = open_log(
        str(bench.folder), bench.config, files, now_ms=1, recovery_point=log.end_offset, clean=True
    )
    with pytest.raises(RebuildingError):
        again.check_transaction_index(0)
    (rebuild,) = rebuilds
    rebuild.run()
    rebuild.apply()
    rebuild.end()
    assert not path.exists()
    assert aborted_transactions(again, again.read(0, max_bytes=9_000), 0, 100) == []


def test_damaged_batches_are_a_storage_error(aborted: Aborted) -> None:
    log = aborted.open()
    path = aborted.bench.folder / aborted.bench.names(".log")[1]
    content = bytearray(path.read_bytes())
    content[600_000:620_000] = bytes(20_000)
    path.write_bytes(content)
    aborted.path(1).write_bytes(b"")
    with pytest.raises(RebuildingError):
        log.check_transaction_index(1)
    aborted.finish()
    with pytest.raises(ApiError) as raised:
        log.check_transaction_index(1)
    assert raised.value.code is ErrorCode.kafka_storage_error
    assert str(path) in str(raised.value)


def test_an_index_of_many_entries_is_built_again_instead_of_checked(aborted: Aborted) -> None:
    log = aborted.open()
    base = log.segments[1].base_offset
    starts = range(base, base + 2 * MAX_CHECKED + 1, 2)
    many = b"".join(ENTRY.pack(0, 7, start, start + 1, start + 2) for start in starts)
    aborted.path(1).write_bytes(many)

    def look() -> None:
        with pytest.raises(RebuildingError):
            log.check_transaction_index(1)

    _, calls = calls_of(look)
    assert calls < 5_000
    aborted.finish()
    assert aborted.all(log) == aborted.listed
    aborted.path(2).write_bytes(many)
    _, calls = calls_of(lambda: aborted.open().check_transaction_index(1))
    assert calls < 5_000
