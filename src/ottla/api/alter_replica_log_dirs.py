"""AlterReplicaLogDirs (key 34): moves replicas between the folders of a broker (KIP-113).

v2: flexible. This broker has one folder, so a replica is either where it should be or asked into a
folder that is none of ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ottla.broker.call import Call
from ottla.protocol.errors import ApiError, ErrorCode

KEY: Final = 34


async def handle(request: Any, call: Call) -> Any:
    build = call.messages
    folder = call.node.config.data_folder.absolute()
    topics: dict[str, list[Any]] = {}
    for asked in request.dirs:
        known_folder = Path(asked.path) == folder
        for topic in asked.topics:
            for index in topic.partitions:
                if not known_folder:
                    code = ErrorCode.log_dir_not_found
                else:
                    code = _held(topic.name, index, call)
                topics.setdefault(topic.name, []).append(
                    build.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return build.AlterReplicaLogDirsResponse(
        results=tuple(
            build.AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )


def _held(topic: str, index: int, call: Call) -> ErrorCode:
    try:
        call.node.partitions.find(topic, index)
    except ApiError as error:
        return error.code
    return ErrorCode.none
