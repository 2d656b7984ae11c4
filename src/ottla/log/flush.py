"""Flushes a log to disk: fsync may take long, so it never runs on the event loop.

After a failed fsync the log takes no appends, and every other flush of it fails, too: see
`SyncError`. Two flushes of one log do not run at the same time. Both would sync the same open file,
and only one of them gets the error.
"""

import os
from threading import Lock
from typing import Final

from ottla.log.errors import SyncError, storage_error, sync_error
from ottla.log.leader_epochs import EpochsWrite
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.runtime.durable import sync_data

_LOCKS: Final = tuple(Lock() for _ in range(64))
"""Shared among the logs: a lock for each of 100,000 would cost memory, and few flush at once."""


class FlushTask:
    """Syncs everything that was appended before the task was created. `up_to_offset` is durable
    after it.

    Created on the loop, which writes the pending index entries; `run()` in a worker thread;
    `apply()` on the loop. Does nothing if the log is closed, now or by then.
    """

    def __init__(self, log: Log) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR."""
        self.log = log
        self.up_to_offset = log.end_offset
        self._cuts = log.cuts
        self._paths: list[str] = []
        self._files: list[OpenFile] = []
        self._epochs: EpochsWrite | None = None
        _check_synced(log)
        if log.is_closed:
            self.up_to_offset = log.recovery_point
            return
        first = log.segment_number(log.recovery_point)
        for segment in log.segments[first:]:
            is_needless = segment.base_offset >= self.up_to_offset and segment is not log.active
            if is_needless or not segment.has_files:
                continue
            try:
                segment.offset_index.store()
                segment.time_index.store()
                if segment.txn_index is not None:
                    segment.txn_index.store()
                    self._paths.append(segment.txn_index.path)
            except OSError as error:
                raise storage_error(f"cannot write the indexes of {segment.path}", error) from None
            self._files.append(segment.file())
            self._paths += (segment.offset_index.path, segment.time_index.path)
        self._epochs = log.epochs.write()
        self._paths += log.unsynced_files
        log.unsynced_files = []

    def run(self) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR; SyncError if it is unknown what is durable."""
        log = self.log
        with _LOCKS[(id(log) >> 4) % len(_LOCKS)]:
            _check_synced(log)
            if log.is_closed:
                return
            try:
                for file in self._files:
                    sync_data(file.fd)
            except OSError as error:
                raise self._failed(error) from None
            self._write_epochs()
            for path in dict.fromkeys(self._paths):
                self._sync(path)

    def _write_epochs(self) -> None:
        log = self.log
        if self._epochs is None:
            return
        try:
            self._epochs.run()
        except SyncError as error:
            log.give_up(str(error))
            raise
        except OSError as error:
            if log.is_closed:
                return  # its folder is gone
            log.unsynced_files.extend(self._paths)
            raise storage_error(f"cannot write {log.epochs.path}", error) from None

    def _sync(self, path: str) -> None:
        log = self.log
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # retention removed it in the meantime
        except OSError as error:
            log.unsynced_files.extend(self._paths)  # the next flush must sync them
            raise storage_error(f"cannot sync {path}", error) from None
        try:
            os.fsync(fd)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            os.close(fd)

    def _failed(self, error: OSError) -> SyncError:
        failure = sync_error(f"cannot sync {self.log.folder}", error)
        self.log.give_up(str(failure))
        return failure

    def apply(self) -> None:
        """Advance the recovery point; not if the log was truncated since, because what was written
        after the truncation may not be synced.
        """
        log = self.log
        if log.cuts == self._cuts and not log.is_closed:
            log.recovery_point = max(log.recovery_point, min(self.up_to_offset, log.end_offset))


def flush(log: Log) -> None:
    """The whole flush at once, for shutdown and for tests."""
    task = FlushTask(log)
    task.run()
    task.apply()


def _check_synced(log: Log) -> None:
    if log.sync_failure is not None:
        raise SyncError(log.sync_failure)
