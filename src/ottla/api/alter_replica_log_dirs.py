"""AlterReplicaLogDirs (key 34): moves replicas between the folders of a broker (KIP-113).

v2: flexible. This broker has one folder, so a request either names that folder, where the replica
is already, or an unknown one. The order of checks is that of ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 34
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)
NAME_MAX: Final = 255
# Kafka names a moving replica's folder `<topic>-<partition>.<32 hex digits>-future` (KAFKA-4893).
FUTURE_SUFFIX_LENGTH: Final = len(".") + 32 + len("-future")


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    folder = str(context.broker.config.data_folder.absolute())
    # A partition that is requested in several folders goes to the last one, with one answer.
    slices = Slices()
    wanted: dict[tuple[str, int], str] = {}
    for requested in request.dirs:
        await slices.count()
        for topic in requested.topics:
            await slices.count()
            for index in topic.partitions:
                await slices.count()
                wanted[topic.name, index] = requested.path
    topics: dict[str, list[Any]] = {}
    for (name, index), path in wanted.items():
        await slices.count()
        code = _moved(name, index, path == folder, context)
        topics.setdefault(name, []).append(
            build.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
    answers = []
    for name, partitions in topics.items():
        await slices.count()
        answers.append(
            build.AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
        )
    return build.AlterReplicaLogDirsResponse(results=tuple(answers))


def _moved(topic: str, index: int, folder_is_ours: bool, context: Context) -> ErrorCode:
    if len(f"{topic}-{index}") + FUTURE_SUFFIX_LENGTH > NAME_MAX:
        return ErrorCode.invalid_topic_exception
    if not folder_is_ours:
        return ErrorCode.log_dir_not_found
    try:
        context.broker.partitions.find(topic, index)
    except ApiError as error:
        # Kafka keeps the older code here, for old clients.
        if error.code is ErrorCode.not_leader_or_follower:
            return ErrorCode.replica_not_available
        return error.code
    return ErrorCode.none
