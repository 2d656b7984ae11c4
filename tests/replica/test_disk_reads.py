import threading

import pytest

from ottla.replica.disk_reads import MAX_THREADS, DiskReads


async def test_work_runs_in_a_thread_and_returns_or_raises() -> None:
    reads = DiskReads()
    name = await reads.run(lambda: threading.current_thread().name)
    assert name.startswith("disk-reads")

    def fails() -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        await reads.run(fails)
    reads.close()
    assert not any(each.name.startswith("disk-reads") for each in threading.enumerate())
    reads.close()
    assert await reads.run(lambda: MAX_THREADS) > 0
    reads.close()
