"""A share partition for tests, with fetched records that are as many batches of the log."""

from collections.abc import Sequence

from ottla.share.acquisition import AcquireMode, LogBatch, Wish
from ottla.share.record_state import RecordState
from ottla.share.share_partition import AckBatch, SharePartition, ShareSettings, StoredState
from ottla.share.state_batch import StateBatch

SETTINGS = ShareSettings()
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def loaded(start: int = 0, *batches: tuple[int, int, int, int]) -> SharePartition:
    """One whose stored batches are (first, last, state, delivery count)."""
    stored = [StateBatch(first, last, RecordState(state), n) for first, last, state, n in batches]
    return SharePartition(StoredState(0, start, stored))


def log(*batches: tuple[int, int]) -> list[LogBatch]:
    return [LogBatch(*each) for each in batches]


def wish(member: str = "m", most: int = 500, *, size: int = 500, strict: bool = False) -> Wish:
    mode = AcquireMode.RECORD_LIMIT if strict else AcquireMode.BATCH_OPTIMIZED
    return Wish(member, mode, most, size)


def acquire(
    partition: SharePartition,
    fetched: Sequence[LogBatch],
    wanted: Wish | None = None,
    *,
    now: int = 0,
    settings: ShareSettings = SETTINGS,
    aborted: Sequence[LogBatch] = (),
) -> list[tuple[int, int, int]]:
    """First, last and delivery count of what the member got, read from the next fetch offset."""
    offset = partition.next_fetch_offset()
    read = [each for each in fetched if each.last >= offset]
    found = partition.acquire(wanted or wish(), offset, read, settings, now, aborted)
    return [tuple(each) for each in found]  # type: ignore[misc]


def say(
    partition: SharePartition,
    first: int,
    last: int,
    *types: int,
    member: str = "m",
    now: int = 0,
    settings: ShareSettings = SETTINGS,
) -> None:
    partition.acknowledge(member, [AckBatch(first, last, types)], settings, now)


def write(partition: SharePartition, is_written: bool = True) -> list[tuple[int, int, int, int]]:
    """First, last, state and delivery count of what was to be written."""
    written = partition.begin_write()
    partition.end_write(is_written=is_written)
    return [tuple(each) for each in written.batches]  # type: ignore[misc]


def states(partition: SharePartition) -> list[tuple[int, int, str, int]]:
    """The runs: first, last, state and delivery count."""
    return [(run.first, run.last, run.state.name, run.delivery_count) for run in partition.runs]
