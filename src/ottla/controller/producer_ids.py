"""Blocks of producer ids (KIP-98; the node of KIP-730's ZooKeeper form).

A block is written before any of its ids is used, so no id is ever assigned twice.
"""

from __future__ import annotations

from typing import Final

from ottla.controller import layout
from ottla.controller.image import ClusterImage, ProducerIdsReserved
from ottla.controller.plan import Plan
from ottla.coordination.tree import Create, Operation, SetData
from ottla.protocol.errors import ApiError, ErrorCode

BLOCK_SIZE: Final = 1000
_LAST_ID: Final = 2**63 - 1


def reserve_producer_ids(image: ClusterImage, broker_id: int) -> Plan[tuple[int, int]]:
    """The next block: its first id, and the id after its last. Raises when ids run out."""
    first = image.next_producer_id
    end = first + BLOCK_SIZE
    if end > _LAST_ID:
        raise ApiError(ErrorCode.unknown_server_error, "Exhausted all producerIds.")
    data = layout.write_producer_ids(broker_id, first, end - 1)
    version = image.producer_ids_version
    write: Operation
    if version is None:
        write = Create(layout.PRODUCER_ID_BLOCK, data)
    else:
        write = SetData(layout.PRODUCER_ID_BLOCK, data, version)
    next_version = 0 if version is None else version + 1
    return Plan((first, end), (write,), (ProducerIdsReserved(end, next_version),))
