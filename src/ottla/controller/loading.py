"""Builds the image from the coordination tree: a controller's first step (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.controller import layout
from ottla.controller.features import DEFAULT_LEVELS
from ottla.controller.image import (
    BrokerAppeared,
    BrokerConfigChanged,
    ClusterImage,
    ConfigImage,
    ControllerChanged,
    DirectoryChanged,
    FeaturesChanged,
    ProducerIdsReserved,
    TopicCreated,
    TopicImage,
)
from ottla.coordination.tree import Create, Operation, TreeNode

ROOTS: Final = (
    "/brokers",
    "/config",
    "/cluster",
    "/controller_epoch",
    layout.FEATURES,
    layout.PRODUCER_ID_BLOCK,
    layout.DELETED_TOPICS,
    layout.DIRECTORIES,
    layout.DELETIONS,
)
"""The parts of the tree that `load_image` and `recovery` need."""


def first_writes(tree: Mapping[str, TreeNode], cluster_id: str) -> tuple[Operation, ...]:
    """The writes that must come before all others: the persistent nodes, the cluster's id, and the
    levels of its features."""
    writes: list[Operation] = [Create(path) for path in layout.LASTING_NODES if path not in tree]
    if layout.CLUSTER_ID not in tree:
        writes.append(Create(layout.CLUSTER_ID, layout.write_cluster_id(cluster_id)))
    if layout.CONTROLLER_EPOCH not in tree:
        writes.append(Create(layout.CONTROLLER_EPOCH, b"0"))
    if layout.FEATURES not in tree:
        writes.append(Create(layout.FEATURES, layout.write_features(DEFAULT_LEVELS)))
    return tuple(writes)


def load_image(tree: Mapping[str, TreeNode], controller_id: int) -> ClusterImage:
    """The image of a tree (the nodes under ROOTS, by path).

    Apply `recovery.healing_writes` first: raises LayoutError if a node is missing or its content
    is invalid.
    """
    image = ClusterImage(layout.read_cluster_id(tree[layout.CLUSTER_ID].data))
    epoch = int(tree[layout.CONTROLLER_EPOCH].data)
    image.apply(ControllerChanged(controller_id, epoch))
    for name in children(tree, layout.BROKER_IDS):
        node = tree[layout.broker_path(int(name))]
        if not layout.is_ottla(node.data):
            continue  # Apache Kafka's: it would not learn from this controller who leads
        broker = layout.read_broker(int(name), node.data, node.created)
        image.apply(BrokerAppeared(broker))
    for name in children(tree, layout.BROKER_CONFIGS):
        node = tree[f"{layout.BROKER_CONFIGS}/{name}"]
        values = layout.read_config(f"{layout.BROKER_CONFIGS}/{name}", node.data)
        resource = layout.broker_resource(name)
        image.apply(BrokerConfigChanged(resource, ConfigImage(values, node.version)))
    for name in children(tree, layout.TOPICS):
        image.apply(TopicCreated(_topic(tree, name)))
    for name in children(tree, layout.DIRECTORIES):
        path = layout.directory_path(int(name))
        directory = layout.read_directory(path, tree[path].data, tree[path].version)
        image.apply(DirectoryChanged(int(name), directory))
    features = tree.get(layout.FEATURES)
    if features is not None:
        image.apply(FeaturesChanged(layout.read_features(features.data), features.version))
    block = tree.get(layout.PRODUCER_ID_BLOCK)
    if block is not None:
        last = layout.read_producer_ids(block.data)
        image.apply(ProducerIdsReserved(last + 1, block.version))
    return image


def children(tree: Mapping[str, TreeNode], path: str) -> dict[str, None]:
    """Names of the node's children, in the tree's order."""
    prefix = path + "/"
    cut = len(prefix)
    return {each[cut:]: None for each in tree if each.startswith(prefix) and "/" not in each[cut:]}


def _topic(tree: Mapping[str, TreeNode], name: str) -> TopicImage:
    node = tree[layout.topic_path(name)]
    topic_id, assignments = layout.read_topic(name, node.data)
    states = []
    for partition, assignment in enumerate(assignments):
        path = layout.state_path(name, partition)
        state = tree.get(path)
        if state is None:
            raise layout.LayoutError(f"{path}: missing")
        states.append(layout.read_state(path, state.data, state.version, assignment))
    config = tree.get(layout.topic_config_path(name))
    return TopicImage(
        name=name,
        topic_id=topic_id,
        partitions=tuple(states),
        overrides=(
            {}
            if config is None
            else layout.read_config(layout.topic_config_path(name), config.data)
        ),
        node_version=node.version,
        config_version=None if config is None else config.version,
    )
