"""What a clean stop leaves behind: `.kafka_cleanshutdown`.

    {"version": 0, "brokerEpoch": 4711,
     "checkpoints": {"<file>": <crc>}, "logs": {"<topic>-<partition>": <bytes>}}

The first two fields are Kafka's (CleanShutdownFileHandler), which ignores the others. The epoch is
that of the broker's last registration: it proves to the controller that this was its last stop
(KIP-966); a folder from a backup has an older one. The others are the CRC-32C of each checkpoint
file, and the size of each log that has records, all its segments together. After a clean stop no
batch is checked, and Kafka trusts the files as they are. Here one wrong digit in a checkpoint would
go unnoticed, as it does in Kafka, and a log that lost its end would end before its checkpointed
end. So the start compares both: reading the checkpoints and listing the folders is what it does
anyway. Without the fields, Kafka or an earlier version stopped; then there is nothing to compare
with.

Crash: the file is written last, and removed by the next start after the logs are open.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import crc32c

from ottla.log import names
from ottla.log.checkpoint import PartitionName, replace_file
from ottla.log.durable import sync_folder
from ottla.log.log import Log

logger = logging.getLogger("ottla.storage")

FILE_NAME: Final = ".kafka_cleanshutdown"
NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class CleanStop:
    """The mark of a clean stop."""

    checksums: Mapping[str, int] = field(default_factory=dict)
    """Of the checkpoint files, by name."""
    sizes: Mapping[PartitionName, int] | None = None
    """The bytes of each log that has records; None if they are not known."""
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
    sizes = {
        names.folder_name(*partition): log.size_bytes
        for partition, log in logs.items()
        if log.size_bytes
    }
    content = {
        "version": 0,
        "brokerEpoch": broker_epoch,
        "checkpoints": checksums,
        "logs": sizes,
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
    sizes = {}
    for folder, size_bytes in logs.items():
        partition = names.partition_of(folder)
        if partition is None or not isinstance(size_bytes, int):
            raise ValueError(f"it has no size of {folder}")
        sizes[partition] = size_bytes
    return CleanStop(checksums, sizes, epoch)
