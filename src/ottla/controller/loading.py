"""Builds the image from the coordination tree: a controller's first step (pure)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
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
    GroupConfigChanged,
    ProducerIdsReserved,
    QuotaConfigChanged,
    TopicCreated,
    TopicImage,
    UserConfigChanged,
)
from ottla.controller.plan import Step
from ottla.coordination.tree import Create, Operation, TreeNode

NODES_A_STEP: Final = 20_000
"""At 0.3 us each."""
TOPIC_US: Final = 15
STATE_US: Final = 8
USER_US: Final = 10
"""What it takes to read a topic's node and a partition's state, about."""
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


_QUOTAS: Final = tuple(
    f"{layout.CONFIG}/{each}/" for each in (layout.USERS, layout.CLIENTS, layout.IPS)
)


def first_writes(
    tree: Mapping[str, TreeNode], cluster_id: str, users: Sequence[Create] = ()
) -> tuple[Operation, ...]:
    """The writes that must come before all others: the persistent nodes, the cluster's id, and the
    levels of its features. `users` are those of a new cluster (see `first_users`).
    """
    writes: list[Operation] = [Create(path) for path in layout.LASTING_NODES if path not in tree]
    if layout.CLUSTER_ID not in tree:
        writes += users
        writes.append(Create(layout.CLUSTER_ID, layout.write_cluster_id(cluster_id)))
    if layout.CONTROLLER_EPOCH not in tree:
        writes.append(Create(layout.CONTROLLER_EPOCH, b"0"))
    if layout.FEATURES not in tree:
        writes.append(Create(layout.FEATURES, layout.write_features(DEFAULT_LEVELS)))
    return tuple(writes)


def load_image(
    tree: Mapping[str, TreeNode], controller_id: int
) -> Generator[None, None, ClusterImage]:
    """The image of a tree (the nodes under ROOTS, by path), in steps (see `plan`).

    Apply `recovery.healing_writes` first: raises LayoutError if a node is missing or its content
    is invalid.
    """
    parents = (
        layout.BROKER_IDS,
        layout.BROKER_CONFIGS,
        layout.USER_CONFIGS,
        layout.GROUP_CONFIGS,
        layout.TOPICS,
        layout.DIRECTORIES,
    )
    brokers, configs, users, groups, topics, directories = yield from children(tree, parents)
    image = ClusterImage(layout.read_cluster_id(tree[layout.CLUSTER_ID].data))
    epoch = int(tree[layout.CONTROLLER_EPOCH].data)
    image.apply(ControllerChanged(controller_id, epoch))
    for name in brokers:
        node = tree[layout.broker_path(int(name))]
        if not layout.is_ottla(node.data):
            continue  # Apache Kafka's: it would not learn from this controller who leads
        broker = layout.read_broker(int(name), node.data, node.created)
        image.apply(BrokerAppeared(broker))
    for name in configs:
        node = tree[f"{layout.BROKER_CONFIGS}/{name}"]
        values = layout.read_config(f"{layout.BROKER_CONFIGS}/{name}", node.data)
        resource = layout.broker_resource(name)
        image.apply(BrokerConfigChanged(resource, ConfigImage(values, node.version)))
    step = Step()
    for name in users:
        if step.is_full(USER_US):
            yield
        node = tree[f"{layout.USER_CONFIGS}/{name}"]
        values = layout.read_config(f"{layout.USER_CONFIGS}/{name}", node.data)
        image.apply(UserConfigChanged(layout.name_of(name), ConfigImage(values, node.version)))
    for name in groups:
        if step.is_full(USER_US):
            yield
        node = tree[f"{layout.GROUP_CONFIGS}/{name}"]
        values = layout.read_config(f"{layout.GROUP_CONFIGS}/{name}", node.data)
        image.apply(GroupConfigChanged(layout.name_of(name), ConfigImage(values, node.version)))
    for entity_path in (yield from quota_paths(tree)):
        node = tree[f"{layout.CONFIG}/{entity_path}"]
        values = layout.read_config(f"{layout.CONFIG}/{entity_path}", node.data)
        image.apply(QuotaConfigChanged(entity_path, ConfigImage(values, node.version)))
        if step.is_full(USER_US):
            yield
    for name in topics:
        topic = yield from _topic(tree, name, step)
        image.apply(TopicCreated(topic))
    for name in directories:
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


def quota_paths(tree: Mapping[str, TreeNode]) -> Generator[None, None, list[str]]:
    """The paths of quotas below /config, but for those of users alone, and of their parents."""
    found: list[str] = []
    for number, path in enumerate(tree):
        if number % NODES_A_STEP == NODES_A_STEP - 1:
            yield
        if path.startswith(_QUOTAS):
            entity_path = path.removeprefix(f"{layout.CONFIG}/")
            if not entity_path.startswith(layout.USERS) or entity_path.count("/") > 1:
                found.append(entity_path)
    return found


def children(
    tree: Mapping[str, TreeNode], paths: Iterable[str]
) -> Generator[None, None, list[dict[str, None]]]:
    """Names of each node's children, in the tree's order, in steps (see `plan`)."""
    found: dict[str, dict[str, None]] = {path: {} for path in paths}
    for number, path in enumerate(tree):
        if number % NODES_A_STEP == NODES_A_STEP - 1:
            yield
        parent, _, name = path.rpartition("/")
        if parent in found:
            found[parent][name] = None
    return list(found.values())


def _topic(
    tree: Mapping[str, TreeNode], name: str, step: Step
) -> Generator[None, None, TopicImage]:
    if step.is_full(TOPIC_US):
        yield
    node = tree[layout.topic_path(name)]
    topic_id, assignments = layout.read_topic(name, node.data)
    states = []
    for partition, assignment in enumerate(assignments):
        if step.is_full(STATE_US):
            yield
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
