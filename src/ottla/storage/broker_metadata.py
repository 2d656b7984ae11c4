"""The identity of a data folder: `meta.properties`, as Kafka writes it.

    version=1
    cluster.id=<22 characters>
    node.id=0
    directory.id=<22 characters>

Kafka's ZooKeeper mode writes version 0: broker.id instead of node.id, and no directory.id. Such a
file gets a directory.id, and is else kept as it is.

The broker refuses a folder of another node or cluster, so that a wrong path damages nothing.
"""

import os
from dataclasses import dataclass, field
from random import Random
from typing import Final

from ottla.log.checkpoint import replace_file
from ottla.log.errors import DataFolderError
from ottla.protocol.kafka_uuid import random_uuid, uuid_text
from ottla.runtime.durable import sync_folder

FILE_NAME = "meta.properties"
_REPAIR: Final = (
    "and the folder has topics: put back a copy of the file, which never changes, or write it with"
    " the lines version=1, cluster.id=(that of the cluster), node.id=(that of this broker)"
)


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """The identity stored in a data folder."""

    node_id: int
    cluster_id: str
    directory_id: str
    is_new: bool = field(default=False, compare=False)
    """The file did not exist."""


def known_cluster_id(root: str | os.PathLike[str]) -> str | None:
    """The cluster that a folder belongs to, or None. Needs no lock."""
    try:
        with open(os.path.join(root, FILE_NAME), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return None  # `load_or_create` reports the error
    found = (line.partition("=")[2].strip() for line in lines if line.startswith("cluster.id="))
    return next(found, None) or None


def known_identity(root: str | os.PathLike[str]) -> BrokerMetadata:
    """The identity of a folder that a broker has used. Needs no lock.

    Raises DataFolderError if there is none, or it is damaged.
    """
    path = os.path.join(root, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            fields = _fields(file.read())
        node_id = int(fields.get("node.id", fields.get("broker.id", "")))
        return BrokerMetadata(node_id, fields["cluster.id"], fields.get("directory.id", ""))
    except FileNotFoundError:
        raise DataFolderError(f"{root} is not a data folder: it has no {FILE_NAME}") from None
    except OSError as error:
        raise DataFolderError(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, ValueError):
        raise DataFolderError(f"{path} is damaged: it has no node.id or no cluster.id") from None


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            fields[name.strip()] = value.strip()
    return fields


def load_or_create(
    root: str, node_id: int, cluster_id: str | None, random: Random, *, is_used: bool = False
) -> BrokerMetadata:
    """Returns the folder's identity; a new folder gets one. `is_used`: it is not new.

    Raises DataFolderError if the folder belongs to another node or cluster, or the file is damaged.
    """
    path = os.path.join(root, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise DataFolderError(f"cannot read {path}: {error.strerror}") from None
        if is_used:
            raise DataFolderError(f"{path} is missing, {_REPAIR}") from None
        metadata = BrokerMetadata(
            node_id,
            cluster_id or uuid_text(random_uuid(random)),
            uuid_text(random_uuid(random)),
            is_new=True,
        )
        replace_file(path, _encode(metadata))
        sync_folder(root)  # with another directory.id, it would be another broker's disk
        return metadata
    except ValueError as error:
        raise DataFolderError(f"{path} is damaged ({error}), {_REPAIR}") from None
    fields = _fields(text)
    found_node = fields.get("node.id", fields.get("broker.id", str(node_id)))
    if found_node != str(node_id):
        raise DataFolderError(
            f"{root} belongs to node {found_node} and this is node {node_id}, says {path}: "
            "use another folder (log.dirs) or that node.id"
        )
    found_cluster = fields.get("cluster.id")
    if not found_cluster:
        raise DataFolderError(f"{path} is damaged (it has no cluster.id), {_REPAIR}")
    if cluster_id not in (None, found_cluster):
        raise DataFolderError(
            f"{root} belongs to cluster {found_cluster} and this is cluster {cluster_id}: "
            "use another folder (log.dirs), or that cluster's ensemble and chroot"
        )
    directory_id = fields.get("directory.id")
    if not directory_id:
        directory_id = uuid_text(random_uuid(random))
        replace_file(path, f"{text.rstrip()}\ndirectory.id={directory_id}\n".encode())
    return BrokerMetadata(node_id, found_cluster, directory_id)


def _encode(metadata: BrokerMetadata) -> bytes:
    return (
        "#\nversion=1\n"
        f"cluster.id={metadata.cluster_id}\n"
        f"node.id={metadata.node_id}\n"
        f"directory.id={metadata.directory_id}\n"
    ).encode()
