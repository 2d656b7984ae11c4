"""DescribeLogDirs (key 35): the size of each partition in the data folder (KIP-113).

v2: flexible. v3: an error for the whole response. v4 (KIP-827): total and usable bytes of the disk.
v5 (KIP-1066): whether the folder is cordoned, which is never the case here.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.replica.partition import Partition
from ottla.runtime.slices import Slices

KEY: Final = 35
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    folder = context.broker.config.data_folder.absolute()
    disk = shutil.disk_usage(folder)
    topics: dict[str, list[Any]] = {}
    slices = Slices()
    async for partition in _described(request, context, slices):
        topics.setdefault(partition.topic, []).append(
            build.DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.log.size_bytes,
                offset_lag=0,
            )
        )
    result = build.DescribeLogDirsResult(
        log_dir=str(folder),
        topics=tuple(
            build.DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )
    return build.DescribeLogDirsResponse(results=(result,))


async def _described(request: Any, context: Context, slices: Slices) -> AsyncIterator[Partition]:
    """Each once: ReplicaManager.describeLogDirs takes the partitions as a set."""
    partitions = context.broker.partitions
    if request.topics is None:
        for each in list(partitions):
            await slices.count()
            yield each
        return
    described: set[Partition] = set()
    for topic in request.topics:
        await slices.count()
        for index in topic.partitions:
            await slices.count()
            partition = partitions.get(topic.topic, index)
            if partition is not None and partition not in described:
                described.add(partition)
                yield partition
