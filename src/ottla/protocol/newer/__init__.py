"""Messages that Apache Kafka 4.4 has and kio does not have yet.

A module for each message of a version, written by `python -m conformance.messages --write` from the
definitions in Kafka's own jar. The folder goes when kio has them.
"""

from typing import Final

VERSIONS: Final[dict[str, tuple[int, ...]]] = {
    "api_versions": (5,),
    "txn_offset_commit": (6,),
    "delete_groups": (3,),
    "streams_group_heartbeat": (1,),
    "streams_group_describe": (1,),
    "streams_group_topology_description_update": (0,),
}
"""The versions of each request type, by its name as in `ottla.protocol.versions`."""


def module_name(name: str, version: int, kind: str) -> str:
    """The module of one message in this folder; `kind` is "request" or "response"."""
    return f"{name}_{version}_{kind}"
