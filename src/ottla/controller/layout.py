"""Kafka's coordination tree: which node holds what, and its JSON (kafka.zk.ZkData).

    /cluster/id                                {"version": "1", "id": ...}
    /controller (ephemeral)                    {"version": 2, "brokerid": N, "timestamp": "..."}
    /controller_epoch                          a number as text
    /brokers/ids/N (ephemeral)                 endpoints, rack, features (version 5)
    /brokers/topics/T                          assignment and topic_id (version 3)
    /brokers/topics/T/partitions/P/state       leader, epochs, isr (version 1)
    /config/topics/T, /config/brokers/N        {"version": 1, "config": {...}}; N <default> for all
    /config/groups/G                           the same, of a group
    /config/users/U, /config/clients/C,        the same; see `users` and `quotas`
    /config/users/U/clients/C, /config/ips/I
    /feature                                   {"version": 2, "status": 1, "features": {...}}
    /latest_producer_id_block                  {"version": 1, "broker": N, "block_start": "..."}
    /admin/delete_topics/T                     a topic that is being deleted
    /ottla/directories/N                       {"version": 1, "directory_id": ..., "epoch": N}
    /ottla/deletions/ID                        {"version": 1, "topic": T}: a topic with this id was
                                               deleted by request; see `deletion_notes`
    /ottla/registrations                       empty; each registration of a broker sets it
    /ottla/secret                              {"version": 1, "secret": ...}: by it the brokers know
                                               each other; see `security.broker_proof`

Ottla adds /ottla, and four fields to a registration: directory_id, that of the broker's data
folder; folder_lock, the file that its process has locked (`storage.folder_lock`); first_epoch, the
czxid of the process's first registration if this is a later one; previous_epoch, the czxid of the
last registration of the process before if that stopped cleanly.

Who deletes another session's ephemeral node must delete that node and no later one of the same
path, which has version 0 again. So the creation of such a node also sets a lasting one:
/controller_epoch for /controller (KafkaZkClient.registerControllerAndIncrementControllerEpoch does
so, too), /ottla/registrations for /brokers/ids/N. The deletion reads the lasting node first and
checks its version in the same `multi`.

Topic ids are written as Kafka writes them: URL-safe base64 without padding (KIP-516).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

from ottla.config.listener import Endpoint, parse_endpoints
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerImage,
    DirectoryImage,
    FeatureRange,
    PartitionState,
)
from ottla.protocol.kafka_uuid import uuid_from_text, uuid_text
from ottla.security.broker_proof import SECRET_BYTES

CLUSTER_ID: Final = "/cluster/id"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
GROUP_CONFIGS: Final = "/config/groups"
CONFIG: Final = "/config"
USER_CONFIGS: Final = "/config/users"
USERS: Final = "users"
CLIENTS: Final = "clients"
IPS: Final = "ips"
"""Nodes below CONFIG, and CLIENTS also below a user's."""
FEATURES: Final = "/feature"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
DELETED_TOPICS: Final = "/admin/delete_topics"
DIRECTORIES: Final = "/ottla/directories"
DELETIONS: Final = "/ottla/deletions"
REGISTRATIONS: Final = "/ottla/registrations"
SECRET: Final = "/ottla/secret"
BROKER_LISTENER: Final = "/ottla/broker-listener"

EVERY_ONE: Final = "<default>"
"""The name of a node with the settings of all brokers, or of all users."""
_FEATURES_ENABLED: Final = 1

LASTING_NODES: Final = (
    "/cluster",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/config",
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    "/config/changes",
    "/config/clients",
    USER_CONFIGS,
    "/config/ips",
    GROUP_CONFIGS,
    "/admin",
    DELETED_TOPICS,
    "/isr_change_notification",
    "/log_dir_event_notification",
    "/ottla",
    DIRECTORIES,
    DELETIONS,
    REGISTRATIONS,
)
"""The nodes that Kafka creates at its first start, and our own, parents before children."""


class LayoutError(ValueError):
    """A node's content is not in the format of this module; the message names the node."""


def topic_path(topic: str) -> str:
    """The node with a topic's assignment and id."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """The parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """The node with a partition's leader and in-sync replicas."""
    return state_path_in(partition_path(topic, partition))


def state_path_in(partition: str) -> str:
    """The same, below the partition's path."""
    return f"{partition}/state"


def broker_path(broker_id: int) -> str:
    """The ephemeral node of a live broker."""
    return f"{BROKER_IDS}/{broker_id}"


def deleted_topic_path(topic: str) -> str:
    """The mark of a topic that is being deleted."""
    return f"{DELETED_TOPICS}/{topic}"


def directory_path(broker_id: int) -> str:
    """The node that remembers a broker's data folder."""
    return f"{DIRECTORIES}/{broker_id}"


def deletion_path(topic_id: UUID) -> str:
    """The node that notes that the topic with this id was deleted."""
    return f"{DELETIONS}/{uuid_text(topic_id)}"


def topic_config_path(topic: str) -> str:
    """The node with a topic's settings."""
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(resource: str) -> str:
    """The node with the dynamic settings of a broker (its number), or of EVERY_BROKER."""
    return f"{BROKER_CONFIGS}/{EVERY_ONE if resource == EVERY_BROKER else resource}"


def broker_resource(node_name: str) -> str:
    """The inverse of `broker_config_path`, from the node's name."""
    return EVERY_BROKER if node_name == EVERY_ONE else node_name


def node_name(name: str) -> str:
    """The name of the node of a user, group, client id or address, encoded as by Kafka's
    Sanitizer; "" is for all others.
    """
    # Java also encodes "~", which Python does not.
    encoded = quote(name, safe="").replace("~", "%7E")
    if encoded in (".", ".."):  # no name of a node
        encoded = encoded.replace(".", "%2E")
    return encoded or EVERY_ONE


def name_of(node_name: str) -> str:
    """The inverse of `node_name`."""
    return "" if node_name == EVERY_ONE else unquote(node_name)


def group_config_path(group: str) -> str:
    """Where a group's settings are."""
    return f"{GROUP_CONFIGS}/{node_name(group)}"


def user_config_path(user: str) -> str:
    """Where a user's settings are."""
    return f"{USER_CONFIGS}/{node_name(user)}"


def _write(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _read(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError as error:
        raise LayoutError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise LayoutError(f"{path}: not a JSON object")
    return content


def write_cluster_id(cluster_id: str) -> bytes:
    """Content of CLUSTER_ID."""
    return _write({"version": "1", "id": cluster_id})


def read_cluster_id(data: bytes) -> str:
    """The inverse of `write_cluster_id`."""
    content = _read(CLUSTER_ID, data)
    cluster_id = content.get("id")
    if not isinstance(cluster_id, str):
        raise LayoutError(f"{CLUSTER_ID}: no id")
    return cluster_id


def write_secret(secret: bytes) -> bytes:
    """Content of SECRET."""
    return _write({"version": 1, "secret": base64.b64encode(secret).decode()})


def read_secret(data: bytes) -> bytes:
    """The inverse of `write_secret`."""
    try:
        secret = base64.b64decode(_read(SECRET, data)["secret"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{SECRET}: {error!r}") from None
    if len(secret) != SECRET_BYTES:
        raise LayoutError(f"{SECRET}: it has {len(secret)} bytes; expected {SECRET_BYTES}")
    return secret


def broker_listener_path(broker_id: int) -> str:
    """Which listener a broker connects to at the others: written before it connects to any."""
    return f"{BROKER_LISTENER}-{broker_id}"


def write_broker_listener(listener: str) -> bytes:
    """Content of a node at `broker_listener_path`."""
    return _write({"version": 1, "listener": listener})


def read_broker_listener(data: bytes) -> str:
    """The inverse of `write_broker_listener`."""
    listener = _read(BROKER_LISTENER, data).get("listener")
    if not isinstance(listener, str):
        raise LayoutError(f"{BROKER_LISTENER}: it has no listener")
    return listener


def write_controller(broker_id: int, now_ms: int) -> bytes:
    """Content of CONTROLLER."""
    return _write(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(now_ms),
            "kraftControllerEpoch": -1,
        }
    )


def read_controller(data: bytes) -> int:
    """The controller's broker number: the inverse of `write_controller`."""
    try:
        return int(_read(CONTROLLER, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{CONTROLLER}: {error!r}") from None


def write_directory(directory_id: str, epoch: int) -> bytes:
    """Content of a broker's DIRECTORIES node."""
    return _write({"version": 1, "directory_id": directory_id, "epoch": epoch})


def read_directory(path: str, data: bytes, version: int) -> DirectoryImage:
    """The inverse of `write_directory`; `version` is that of the node."""
    content = _read(path, data)
    try:
        return DirectoryImage(str(content["directory_id"]), int(content["epoch"]), version)
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{path}: {error!r}") from None


def write_deletion(topic: str) -> bytes:
    """Content of a DELETIONS node. The id, which is its name, says which topic it was."""
    return _write({"version": 1, "topic": topic})


def write_broker(broker: BrokerImage, now_ms: int, folder_lock: str | None = None) -> bytes:
    """Content of a broker's node: version 5 of Kafka's registration."""
    first = broker.endpoints[0]
    content: dict[str, Any] = {
        "version": 5,
        "host": first.host,
        "port": first.port,
        "endpoints": [str(endpoint) for endpoint in broker.endpoints],
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "listener_security_protocol_map": {
            endpoint.name: endpoint.protocol for endpoint in broker.endpoints
        },
        "features": {
            feature: {"min_version": first, "max_version": last}
            for feature, first, last in broker.features
        },
    }
    if broker.rack is not None:
        content["rack"] = broker.rack
    if broker.directory_id is not None:
        content["directory_id"] = broker.directory_id
    if folder_lock is not None:
        content["folder_lock"] = folder_lock
    if broker.first_epoch >= 0:
        content["first_epoch"] = broker.first_epoch
    if broker.previous_epoch >= 0:
        content["previous_epoch"] = broker.previous_epoch
    return _write(content)


def is_ottla(data: bytes) -> bool:
    """Whether a broker's node was written by Ottla, and not by Apache Kafka. Raises LayoutError."""
    return "directory_id" in _read(BROKER_IDS, data)


def read_broker(broker_id: int, data: bytes, epoch: int = -1) -> BrokerImage:
    """The inverse of `write_broker`; `epoch` is the czxid of the node."""
    path = broker_path(broker_id)
    content = _read(path, data)
    try:
        protocols = content["listener_security_protocol_map"]
        pairs = [f"{name}:{protocol}" for name, protocol in protocols.items()]
        endpoints: tuple[Endpoint, ...] = parse_endpoints(path, content["endpoints"], pairs)
        first_epoch = int(content.get("first_epoch", -1))
        previous_epoch = int(content.get("previous_epoch", -1))
        features = tuple(
            FeatureRange(str(feature), int(levels["min_version"]), int(levels["max_version"]))
            for feature, levels in content.get("features", {}).items()
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise LayoutError(f"{path}: {error!r}") from None
    rack, directory_id = content.get("rack"), content.get("directory_id")
    return BrokerImage(
        broker_id, endpoints, rack, epoch, directory_id, first_epoch, features, previous_epoch
    )


def read_folder_lock(broker_id: int, data: bytes) -> str | None:
    """The file that the registered process has locked; None if its registration does not say."""
    lock = _read(broker_path(broker_id), data).get("folder_lock")
    return lock if isinstance(lock, str) else None


class Assignment(NamedTuple):
    """One partition's replicas, as in the topic's node."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def write_topic(topic_id: UUID, partitions: Sequence[Assignment | PartitionState]) -> bytes:
    """Content of a topic's node: the replicas of each partition, in order (KIP-455)."""
    return _write(
        {
            "version": 3,
            "topic_id": uuid_text(topic_id),
            "partitions": {str(at): list(each.replicas) for at, each in enumerate(partitions)},
            "adding_replicas": {
                str(at): list(each.adding) for at, each in enumerate(partitions) if each.adding
            },
            "removing_replicas": {
                str(at): list(each.removing) for at, each in enumerate(partitions) if each.removing
            },
        }
    )


def read_topic(topic: str, data: bytes) -> tuple[UUID, tuple[Assignment, ...]]:
    """The inverse of `write_topic`."""
    content = _read(topic_path(topic), data)
    try:
        # Kafka before 2.4 wrote neither adding nor removing replicas.
        kinds = [
            content["partitions"],
            content.get("adding_replicas", {}),
            content.get("removing_replicas", {}),
        ]
        partitions = tuple(
            Assignment(*(tuple(map(int, kind.get(str(at), ()))) for kind in kinds))
            for at in range(len(kinds[0]))
        )
        if not all(each.replicas for each in partitions):
            raise LayoutError(f"{topic_path(topic)}: a partition without replicas")
        if "topic_id" not in content:
            raise LayoutError(
                f"{topic_path(topic)}: no topic_id. Apache Kafka 2.8 to 3.9 writes it when it runs"
                " with the inter.broker.protocol.version of its own version"
            )
        return uuid_from_text(content["topic_id"]), partitions
    except LayoutError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LayoutError(f"{topic_path(topic)}: {error!r}") from None


def write_state(state: PartitionState, controller_epoch: int) -> bytes:
    """Content of a partition's state node."""
    return _state_text(state.leader, state.leader_epoch, state.isr, controller_epoch)


@lru_cache(maxsize=1024)
def _state_text(
    leader: int, leader_epoch: int, isr: tuple[int, ...], controller_epoch: int
) -> bytes:
    """Cached: a plan writes thousands of states, and most of them are alike."""
    return _write(
        {
            "version": 1,
            "leader": leader,
            "leader_epoch": leader_epoch,
            "controller_epoch": controller_epoch,
            "isr": isr,
        }
    )


def read_state(path: str, data: bytes, version: int, assignment: Assignment) -> PartitionState:
    """The inverse of `write_state`; `version` is that of the node."""
    content = _read(path, data)
    try:
        return PartitionState(
            leader=int(content["leader"]),
            leader_epoch=int(content["leader_epoch"]),
            replicas=assignment.replicas,
            isr=tuple(int(each) for each in content["isr"]),
            partition_epoch=version,
            adding=assignment.adding,
            removing=assignment.removing,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{path}: {error!r}") from None


def write_config(values: Mapping[str, str]) -> bytes:
    """Content of a topic's or broker's settings node."""
    return _write({"version": 1, "config": dict(values)})


def read_config(path: str, data: bytes) -> dict[str, str]:
    """The inverse of `write_config`; an empty node has no settings (ConfigEntityZNode.decode)."""
    if not data:
        return {}
    values = _read(path, data).get("config")
    if not isinstance(values, dict) or not all(isinstance(each, str) for each in values.values()):
        raise LayoutError(f"{path}: no config of texts")
    return values


def write_features(levels: Mapping[str, int]) -> bytes:
    """Content of FEATURES: the finalized levels (KIP-584, Kafka's FeatureZNode)."""
    features = {feature: {"max_version_level": level} for feature, level in levels.items()}
    return _write({"version": 2, "status": _FEATURES_ENABLED, "features": features})


def read_features(data: bytes) -> dict[str, int]:
    """The inverse of `write_features`; without features at level 0."""
    content = _read(FEATURES, data)
    try:
        levels = {
            str(feature): int(each["max_version_level"])
            for feature, each in content.get("features", {}).items()
        }
        is_enabled = int(content["status"]) == _FEATURES_ENABLED
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LayoutError(f"{FEATURES}: {error!r}") from None
    if not is_enabled:
        return {}
    return {feature: level for feature, level in levels.items() if level > 0}


def write_producer_ids(broker_id: int, first: int, last: int) -> bytes:
    """Content of PRODUCER_ID_BLOCK: the last reserved block, both ends included."""
    return _write(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def read_producer_ids(data: bytes) -> int:
    """The last id of the last reserved block; -1 if there is none: Kafka creates the node empty
    (ZkData.PersistentZkPaths)."""
    if not data:
        return -1
    content = _read(PRODUCER_ID_BLOCK, data)
    try:
        return int(content["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{PRODUCER_ID_BLOCK}: {error!r}") from None
