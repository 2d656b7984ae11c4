"""What a clean stop leaves behind: `.kafka_cleanshutdown`.

    {"version": 0, "brokerEpoch": 4711,
     "checkpoints": {"<file>": <crc>}, "logs": {"<topic>-<partition>": [<bytes>, <crc>]}}

The first two fields are Kafka's (CleanShutdownFileHandler), which ignores the others. The epoch is
that of the broker's last registration: it proves to the controller that this was its last stop
(KIP-966); a folder from a backup has an older one. The others are the CRC-32C of each checkpoint
file, and of each log its size, which is that of its segments, its indexes of aborted transactions
and its last producer snapshot (`opening.size_on_disk`), and the CRC-32C of its leader epochs. After
a clean stop no batch is checked, and Kafka takes what is there: a log that lost its end would end
before its checkpointed end, one that lost its snapshot would take duplicates. So the start compares
both: reading the checkpoints and listing the folders is what it does anyway. Without the fields,
Kafka or an earlier version stopped; then there is nothing to compare with.

Crash: the file is written last, and removed by the next start after the logs are open.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import crc32c

from ottla.log import names
from ottla.log.checkpoint import PartitionName, replace_file
from ottla.log.log import Log
from ottla.log.opening import size_on_disk
from ottla.runtime.durable import sync_folder

logger = logging.getLogger("ottla.storage")

FILE_NAME: Final = ".kafka_cleanshutdown"
NO_EPOCH: Final = -1


class LeftLog(NamedTuple):
    """How a log was left."""

    size_bytes: int
    epochs_checksum: int


@dataclass(frozen=True, slots=True)
class CleanStop:
    """The mark of a clean stop."""

    checksums: Mapping[str, int] = field(default_factory=dict)
    """Of the checkpoint files, by name."""
    logs: Mapping[PartitionName, LeftLog] | None = None
    """Each log with files; None if they are not known."""
    broker_epoch: int = NO_EPOCH
    """NO_EPOCH if it is not known."""


def read_clean_stop(root: str) -> CleanStop | None:
    """The mark in this data folder; None without a clean stop, or if the file is damaged."""
    path = f"{root}/{FILE_NAME}"
    try:
        with open(path, "rb") as file:
            return _decode(file.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        logger.warning("%s is damaged (%s): the logs are recovered as after a crash", path, reason)
        return None


def write_clean_stop(
    root: str,
    checkpoints: Iterable[str],
    logs: Mapping[PartitionName, Log],
    broker_epoch: int = NO_EPOCH,
) -> None:
    """Write the mark; all else is on the disk. Raises ApiError KAFKA_STORAGE_ERROR and OSError."""
    checksums = {}
    for name in checkpoints:
        with open(f"{root}/{name}", "rb") as file:
            checksums[name] = crc32c.crc32c(file.read())
    left = {
        names.folder_name(*partition): (size_on_disk(log.folder), log.epochs.checksum)
        for partition, log in logs.items()
        if log.is_on_disk
    }
    content = {
        "version": 0,
        "brokerEpoch": broker_epoch,
        "checkpoints": checksums,
        "logs": left,
    }
    replace_file(f"{root}/{FILE_NAME}", json.dumps(content).encode())


def remove_clean_stop(root: str) -> None:
    """From here on the folder is unclean, also after a power failure. Raises OSError."""
    with suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(f"{root}/{FILE_NAME}")
        sync_folder(root)


def _decode(content: bytes) -> CleanStop:
    """Raises ValueError."""
    if not content:
        return CleanStop()  # as Kafka wrote it before 3.7
    fields = json.loads(content)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    checksums, logs = fields.get("checkpoints", {}), fields.get("logs")
    epoch = fields.get("brokerEpoch", NO_EPOCH)
    if not isinstance(checksums, dict) or not (logs is None or isinstance(logs, dict)):
        raise ValueError("it has another form")
    if not isinstance(epoch, int):
        raise ValueError("its brokerEpoch is no number")
    if logs is None:
        return CleanStop(checksums, broker_epoch=epoch)
    left = {}
    for folder, numbers in logs.items():
        partition = names.partition_of(folder)
        match numbers:
            case [int(size_bytes), int(epochs_checksum)] if partition is not None:
                left[partition] = LeftLog(size_bytes, epochs_checksum)
            case _:
                raise ValueError(f"it does not say how {folder} was left")
    return CleanStop(checksums, left, epoch)
