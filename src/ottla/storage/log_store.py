"""The data folder: a folder for each partition, and files about all of them.

Folders that end in `-delete` are being removed; those that end in `-stray` are kept for the
operator (see `stray_folder`).

    .lock                               held while a broker uses the folder
    .ottla-lost-sync                    an fsync failed; see `lost_sync`
    meta.properties                     see `broker_metadata`
    recovery-point-offset-checkpoint    the offset up to which each log is on the disk
    log-start-offset-checkpoint         start offsets of logs that begin after their first segment
    replication-offset-checkpoint       high watermarks
    cleaner-offset-checkpoint           the offset up to which each compacted log is clean
    .kafka_cleanshutdown                the last stop wrote everything; see `clean_stop`

The checkpoint files name partitions, not topic ids. So a log is created only while none of them
names its partition: else, after a crash, the new log would begin at the start, the recovery point
and the high watermark of a deleted one. `stale` has the names that are not free yet.

Crash: the clean-shutdown marker is missing, so the next start recovers every log from its recovery
point on.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Final
from uuid import UUID

from ottla.log import names
from ottla.log.checkpoint import PartitionName, write_offsets
from ottla.log.config import LogConfig
from ottla.log.errors import DataFolderError, reason, storage_error, sync_error
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.open_file import MAX_OPEN_FILES, OpenFiles
from ottla.log.opening import open_log
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.kafka_uuid import random_uuid
from ottla.runtime.durable import sync_folder
from ottla.storage import lost_sync
from ottla.storage.broker_metadata import FILE_NAME as IDENTITY
from ottla.storage.broker_metadata import BrokerMetadata, load_or_create
from ottla.storage.checkpoint_files import (
    ALL_FILES,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    CheckpointFiles,
)
from ottla.storage.clean_stop import (
    NO_EPOCH,
    CleanStop,
    read_clean_stop,
    remove_clean_stop,
    write_clean_stop,
)
from ottla.storage.folder_lock import FolderLock
from ottla.storage.stray_folder import StrayFolder, read_stray, rename, write_note

logger = logging.getLogger("ottla.storage")

_FLUSHED_AT_ONCE: Final = 16
_NO_LOG: Final = (0, None)
_KRAFT_FOLDER: Final = "__cluster_metadata-0"


class LogStore:
    """All logs of one broker. Created by `LogStore.open`. For the event loop's thread only."""

    def __init__(
        self,
        root: str,
        lock: FolderLock,
        metadata: BrokerMetadata,
        files: OpenFiles,
        random: Random,
    ) -> None:
        self.root = root
        self.metadata = metadata
        self.files = files
        self.logs: dict[PartitionName, Log] = {}
        self.high_watermarks: dict[PartitionName, int] = {}
        """As checkpointed; the partitions have the current ones."""
        self.cleaner_offsets: dict[PartitionName, int] = {}
        self.stale: set[PartitionName] = set()
        """Partitions without a log that a checkpoint file may still name."""
        self.was_clean = False
        """The last stop was clean, and everything is as it left it."""
        self.previous_epoch = NO_EPOCH
        """The broker epoch in which the process before stopped cleanly; NO_EPOCH if it did not, or
        if records are missing that it had."""
        self.removals: list[Removal] = []
        """Folders that an earlier run did not finish deleting."""
        self.strays: list[str] = []
        """Folders that earlier runs set aside."""
        self._lock = lock
        self._random = random
        self._made: list[str] = []
        """The folders that were missing, the innermost first."""

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        *,
        node_id: int,
        random: Random,
        cluster_id: str | None = None,
        max_open_files: int = MAX_OPEN_FILES,
    ) -> "LogStore":
        """Locks the folder, and creates it if it is missing; call `open_logs` next.

        Raises DataFolderError with a one-line message.
        """
        folder = os.path.abspath(root)
        made: list[str] = []
        try:
            if not os.path.isdir(folder):
                made = _missing(folder)
                os.makedirs(folder)
                sync_folder(os.path.dirname(folder))
            lock = FolderLock.take(folder)
        except (FileExistsError, NotADirectoryError):
            raise DataFolderError(f"cannot use {folder}: it is a file, or lies below one") from None
        except OSError as error:
            doing = f"cannot use {folder}"
            raise DataFolderError(f"{doing}: {reason(doing, error)}") from None
        lost_sync.read_disk_again(folder)
        try:
            # With a cluster given, the folder may have come without the file.
            is_used = cluster_id is None and any(map(_is_partition, _folders_in(folder)))
            metadata = load_or_create(folder, node_id, cluster_id, random, is_used=is_used)
        except (OSError, ApiError, ValueError) as error:
            lock.release()
            raise DataFolderError(f"cannot use {folder}: {error}") from None
        except DataFolderError:
            lock.release()
            raise
        store = cls(folder, lock, metadata, OpenFiles(max_open_files), random)
        store._made = made
        return store

    @property
    def is_gone(self) -> bool:
        """Whether the folder was deleted, or its lock, while this process uses it: what it writes
        is in no folder, and another broker may take the name. Raises ApiError KAFKA_STORAGE_ERROR
        if that cannot be known.
        """
        try:
            return not self._lock.is_there
        except OSError as error:
            raise storage_error(f"cannot find the lock of {self.root}", error) from None

    def open_logs(self, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        """Opens the log of every partition in the folder; `config_of` returns a topic's settings.

        Raises DataFolderError with a one-line message, and keeps the lock.
        """
        try:
            self._open_logs(config_of, now_ms)
        except (OSError, ApiError, ValueError) as error:
            raise DataFolderError(f"cannot use {self.root}: {error}") from None

    def release(self) -> None:
        """Releases the folder's lock and files, without marking a clean stop. May be called
        again.
        """
        self._lock.release()
        self.files.forget_all()

    def withdraw(self) -> None:
        """Releases the folder, and takes back what `open` wrote into a new one: no broker has
        served from it. Errors are ignored: what is left does no harm.
        """
        if not self.metadata.is_new:
            self.release()
            return
        with suppress(OSError):
            os.unlink(os.path.join(self.root, IDENTITY))
        with suppress(OSError):
            self._lock.withdraw()
        for folder in self._made:
            with suppress(OSError):
                os.rmdir(folder)

    @property
    def lock_identity(self) -> str | None:
        """See `FolderLock.identity`."""
        return self._lock.identity

    def _open_logs(self, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        stop = read_clean_stop(self.root)
        found = CheckpointFiles(self.root, stop)
        self.high_watermarks, self.cleaner_offsets = found[HIGH_WATERMARKS], found[CLEANER_OFFSETS]
        recovery_points, starts = found[RECOVERY_POINTS], found[LOG_STARTS]
        has_points = RECOVERY_POINTS not in found.damaged
        # After a clean stop the recovery point is the log's end, if the file is proven.
        knows_ends = stop is None or found.is_proven(RECOVERY_POINTS)
        knows_cleaned = CLEANER_OFFSETS not in found.damaged
        left = None if stop is None else stop.logs
        was_clean = stop is not None and not found.damaged
        for name in sorted(_folders_in(self.root)):
            if name.endswith(names.DELETED_FOLDER):
                self.removals.append(Removal((self._path(name),), 0))
                continue
            if name.endswith(names.STRAY_FOLDER):
                self.strays.append(self._path(name))
                continue
            partition = names.partition_of(name)
            if partition is None or name == _KRAFT_FOLDER:
                continue
            size_bytes, epochs_checksum = (
                (None, None) if left is None else left.get(partition, _NO_LOG)
            )
            clean = stop is not None and (partition in recovery_points or not has_points)
            self.logs[partition] = log = open_log(
                self._path(name),
                config_of(partition[0]),
                self.files,
                now_ms=now_ms,
                random=self._random,
                start_offset=starts.get(partition, 0),
                recovery_point=recovery_points.get(partition, 0) if knows_ends else 0,
                clean=clean,
                is_doubtful=not has_points,
                was_compacted=partition in self.cleaner_offsets or not knows_cleaned,
                size_bytes=size_bytes,
                epochs_checksum=epochs_checksum,
            )
            was_clean &= log.is_clean
            self._tell_lost_end(partition, log)
        self.was_clean = was_clean
        self._tell_missing(stop)
        remove_clean_stop(self.root)
        lost_sync.forget(self.root)
        missing = _without_folder(found, self.logs)
        if missing:
            self._forget(missing)
        elif any(self._is_above(name, offset) for name, offset in recovery_points.items()):
            # Otherwise, after another crash, what is written until then would count as synced.
            CheckpointTask(self, self.high_watermarks).run()
        elif stop is not None and was_clean:
            self.previous_epoch = stop.broker_epoch

    def _is_above(self, name: PartitionName, recovery_point: int) -> bool:
        """Whether it is above the log's end. Kafka only lowers it in memory (LogLoader)."""
        log = self.logs.get(name)
        return log is not None and log.recovery_point < recovery_point

    def _tell_lost_end(self, partition: PartitionName, log: Log) -> None:
        """After a power failure, for example. Other replicas may have the records."""
        high_watermark = self.high_watermarks.get(partition, 0)
        if log.end_offset < high_watermark:
            logger.warning(
                "%s ends at offset %d, below its high watermark of %d: %d committed records are "
                "missing here; where no other replica has them they are lost",
                log.folder, log.end_offset, high_watermark, high_watermark - log.end_offset,
            )  # fmt: skip

    def _tell_missing(self, stop: CleanStop | None) -> None:
        left = {} if stop is None or stop.logs is None else stop.logs
        for partition in left.keys() - self.logs.keys():
            size_bytes = left[partition].size_bytes
            if size_bytes:
                folder = self._path(names.folder_name(*partition))
                logger.error(
                    "%s is gone: it had %d bytes when the broker stopped", folder, size_bytes
                )

    def _forget(self, missing: set[PartitionName]) -> None:
        """Rewrites the checkpoint files without partitions whose folders are gone."""
        for offsets in (self.high_watermarks, self.cleaner_offsets):
            for name in missing & offsets.keys():
                del offsets[name]
        CheckpointTask(self, self.high_watermarks).run()

    @property
    def has_partitions(self) -> bool:
        """Whether the folder contains logs, open or not."""
        return any(map(_is_partition, _folders_in(self.root)))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def create(
        self, topic: str, partition: int, config: LogConfig, topic_id: UUID, now_ms: int
    ) -> Log:
        """Creates an empty log. Its folder is created with its first record, because most of
        thousands of new partitions stay empty for long. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        assert (topic, partition) not in self.logs
        assert (topic, partition) not in self.stale, "a checkpoint file names it"
        folder = self._path(names.folder_name(topic, partition))
        log = open_log(folder, config, self.files, now_ms=now_ms, random=self._random)
        if log.is_on_disk:
            raise ApiError(
                ErrorCode.kafka_storage_error, f"{folder} exists, but should have been removed"
            )
        log.topic_id = topic_id
        self.logs[topic, partition] = log
        return log

    def truncated(self, topic: str, partition: int, offset: int) -> None:
        """The log was truncated at `offset`: records appended there from now on are not clean yet
        (LogCleanerManager.maybeTruncateCheckpoint).
        """
        clean_offset = self.cleaner_offsets.get((topic, partition), offset)
        if clean_offset > offset:
            self.cleaner_offsets[topic, partition] = offset

    def delete(self, topic: str, partition: int) -> Removal:
        """Removes the log and renames its folder at once; the removal's `run` deletes the folder.

        Its name is `stale` until the next checkpoint. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        log = self.logs[topic, partition]
        renamed = names.deleted_folder_name(topic, partition, random_uuid(self._random))
        was_there = self._take_away(topic, partition, renamed)
        paths = (self._path(renamed),) if was_there else ()
        return Removal(paths, log.config.file_delete_delay_ms)

    def put_aside(self, topic: str, partition: int, why: str, now_ms: int) -> StrayFolder | None:
        """Removes the log and keeps its folder under a stray's name (see `stray_folder`); None if
        it never had a record.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        log = self.logs[topic, partition]
        if os.path.isdir(log.folder):
            start = log.start_offset
            try:
                write_note(
                    log.folder, topic, partition, why=why, at_ms=now_ms, log_start_offset=start
                )
            except ApiError as error:
                # A full disk, for example. The records are kept nevertheless.
                logger.warning("%s-%d: %s", topic, partition, error)
        renamed = names.stray_folder_name(topic, partition, random_uuid(self._random))
        if not self._take_away(topic, partition, renamed):
            return None
        return read_stray(self._path(renamed))

    def _take_away(self, topic: str, partition: int, renamed: str) -> bool:
        """Removes the log, and renames its folder; False if it has none."""
        log = self.logs.pop((topic, partition))
        self.stale.add((topic, partition))
        self.high_watermarks.pop((topic, partition), None)
        self.cleaner_offsets.pop((topic, partition), None)
        folder = log.folder
        log.deleted(self._path(renamed))
        return rename(folder, self._path(renamed))

    def delete_stray(self, stray: StrayFolder) -> Removal:
        """Deletes a stray folder whose topic turned out to be deleted: as `delete`.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        unique = random_uuid(self._random)
        renamed = self._path(names.deleted_folder_name(stray.topic, stray.partition, unique))
        return Removal((renamed,) if rename(stray.path, renamed) else (), 0)

    def checkpoint(self, high_watermarks: Mapping[PartitionName, int]) -> "CheckpointTask":
        """The checkpoint files as of now; run the task in a worker thread, regularly, one at a
        time.
        """
        return CheckpointTask(self, high_watermarks)

    def write_high_watermarks(self, high_watermarks: Mapping[PartitionName, int]) -> None:
        """Writes only that file; run in a worker. Raises ApiError KAFKA_STORAGE_ERROR."""
        write_offsets(self._path(HIGH_WATERMARKS), high_watermarks)

    def close(
        self, high_watermarks: Mapping[PartitionName, int], broker_epoch: int = NO_EPOCH
    ) -> None:
        """A clean stop: writes everything to the disk, the marker last, and releases the lock.
        `broker_epoch` is that of the broker's registration.

        Raises ApiError KAFKA_STORAGE_ERROR; then the next start recovers. Blocks, so call it last.
        """
        try:
            if self.is_gone:
                raise gone_error(self.root)
            unsafe = []
            for log in self.logs.values():
                log.close()
                if log.unflushed_records or log.unsynced_files:
                    unsafe.append(log)
            with ThreadPoolExecutor(_FLUSHED_AT_ONCE) as pool:
                # In small groups, because each flush holds its files open.
                for start in range(0, len(unsafe), _FLUSHED_AT_ONCE):
                    tasks = [FlushTask(log) for log in unsafe[start : start + _FLUSHED_AT_ONCE]]
                    list(pool.map(FlushTask.run, tasks))
                    for task in tasks:
                        task.apply()
            CheckpointTask(self, high_watermarks).run()
            for log in self.logs.values():
                log.is_closed = True
            write_clean_stop(self.root, ALL_FILES, self.logs, broker_epoch)
        finally:
            self.release()


class CheckpointTask:
    """Offsets of all partitions, copied on the loop; `run()` writes them, in any thread; `apply()`,
    on the loop, frees the names of deleted partitions.
    """

    def __init__(self, store: LogStore, high_watermarks: Mapping[PartitionName, int]) -> None:
        self._root = store.root
        self._stale = store.stale
        self._dropped = frozenset(store.stale)
        logs = store.logs
        self._offsets = {
            RECOVERY_POINTS: {name: log.recovery_point for name, log in logs.items()},
            LOG_STARTS: {
                name: log.start_offset
                for name, log in logs.items()
                if log.start_offset > log.segments[0].base_offset
            },
            HIGH_WATERMARKS: dict(high_watermarks),
            CLEANER_OFFSETS: dict(store.cleaner_offsets),
        }

    def run(self) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR."""
        for name in ALL_FILES:
            write_offsets(f"{self._root}/{name}", self._offsets[name])
        try:
            sync_folder(self._root)
        except OSError as error:
            raise sync_error(f"cannot sync {self._root}", error) from None

    def apply(self) -> None:
        """The files are written, and do not name what was deleted before the task was created."""
        self._stale -= self._dropped


def _missing(folder: str) -> list[str]:
    """The folder and those above it that do not exist, the innermost first."""
    found: list[str] = []
    while not os.path.lexists(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _is_partition(name: str) -> bool:
    return (
        names.partition_of(name) is not None
        and name != _KRAFT_FOLDER
        and not name.endswith(names.DELETED_FOLDER)
    )


def _folders_in(root: str) -> Iterator[str]:
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir():
                yield entry.name


def _without_folder(
    found: CheckpointFiles, logs: Mapping[PartitionName, Log]
) -> set[PartitionName]:
    """The partitions with records, by the checkpoint files, whose folders somebody removed. A
    partition without records has no folder.
    """
    return {
        name
        for file in ALL_FILES
        for name, offset in found[file].items()
        if offset > 0 and name not in logs
    }


def gone_error(folder: str) -> ApiError:
    """The folder was deleted while the broker used it."""
    return ApiError(
        ErrorCode.kafka_storage_error, f"{folder} was deleted while the broker was using it"
    )
