"""/metrics for Prometheus, if `ottla.metrics.listener` is set.

The produce and fetch paths count nothing extra for it: existing integers are gathered on the event
loop when Prometheus scrapes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ottla.controller.image import NO_LEADER
from ottla.node.loop_watchdog import HELD_MS, LoopWatchdog
from ottla.node.loss_metrics import LossMetrics
from ottla.protocol.versions import APIS
from ottla.replica.partition_role import Role
from ottla.security.acl import word

if TYPE_CHECKING:
    from ottla.node.node import Node

GATHER_WITHIN_S = 10


class BrokerCollector(Collector):
    """Called in the HTTP server's thread; reads the node in the event loop's."""

    def __init__(self, node: Node, watchdog: LoopWatchdog, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._watchdog = watchdog
        self._loop = loop
        self._losses = LossMetrics(node)

    def collect(self) -> Iterable[Metric]:
        gathered = asyncio.run_coroutine_threadsafe(self._gather(), self._loop)
        return gathered.result(timeout=GATHER_WITHIN_S)

    async def _gather(self) -> list[Metric]:
        return [
            *_of_broker(self._node),
            *_of_loop(self._watchdog),
            *_of_topics(self._node),
            *await self._losses.gather(),
        ]


def _of_loop(watchdog: LoopWatchdog) -> Iterable[Metric]:
    yield CounterMetricFamily(
        "ottla_loop_holds",
        f"How often the event loop was held for {HELD_MS} ms and more",
        value=watchdog.holds,
    )
    yield GaugeMetricFamily(
        "ottla_loop_longest_hold_ms",
        "The longest time for which the event loop was held",
        value=watchdog.longest_ms,
    )


def _of_broker(node: Node) -> Iterable[Metric]:
    limits = node.connection_limits
    yield GaugeMetricFamily("ottla_connections", "Open connections", value=limits.count)
    yield GaugeMetricFamily(
        "ottla_connections_waiting", "Connections that wait to be let in", value=limits.waiting
    )
    yield CounterMetricFamily(
        "ottla_connections_refused", "Connections over a limit", value=limits.refused
    )
    yield CounterMetricFamily(
        "ottla_connections_ended_for_memory",
        "Connections that ended because all together held too much",
        value=limits.memory.ended,
    )
    requests = CounterMetricFamily("ottla_requests", "Requests answered", labels=["api"])
    for key, count in sorted(node.request_counts().items()):
        requests.add_metric([APIS[key].name if key in APIS else str(key)], count)
    yield requests
    yield from _of_authorizer(node)
    expiry = GaugeMetricFamily(
        "ottla_certificate_expiry_timestamp_seconds",
        "When a listener's certificate expires, since 1970",
        labels=["listener"],
    )
    for name, end_s in sorted(node.certificate_ends_s.items()):
        expiry.add_metric([name], end_s)
    yield expiry
    throttled = CounterMetricFamily(
        "ottla_throttled", "How often clients were throttled", labels=["quota"]
    )
    for kind, count in node.throttling.throttled.items():
        throttled.add_metric([kind.value], count)
    yield throttled
    yield GaugeMetricFamily("ottla_partitions", "Partitions held", value=len(node.partitions))
    yield from _of_cluster(node)
    yield GaugeMetricFamily(
        "ottla_fetch_sessions", "Fetch sessions open", value=len(node.fetch_sessions)
    )
    yield GaugeMetricFamily(
        "ottla_fetch_session_partitions",
        "Partitions that they keep",
        value=node.fetch_sessions.partition_count,
    )
    letters = node.shared_partitions.dead_letters
    yield CounterMetricFamily(
        "ottla_dead_letters", "Dead letters of share groups written", value=letters.written
    )
    yield CounterMetricFamily(
        "ottla_dead_letters_given_up",
        "Records whose dead letter could not be written",
        value=letters.given_up,
    )


def _of_authorizer(node: Node) -> Iterable[Metric]:
    labels = ["operation", "resource"]
    denied = CounterMetricFamily("ottla_denied", "What clients were denied", labels=labels)
    acls = 0
    if node.authorization is not None:
        acls = len(node.authorization.authorizer)
        for (operation, resource), count in sorted(node.authorization.denied.items()):
            denied.add_metric([word(operation), word(resource)], count)
    yield denied
    yield GaugeMetricFamily("ottla_acls", "ACLs that this broker knows", value=acls)


def _of_cluster(node: Node) -> Iterable[Metric]:
    led = [each for each in node.partitions if each.role is Role.LEADER and each.state is not None]
    active = node.controller.active
    cut = node.replica_fetchers.truncations
    for name, text, value in (
        ("ottla_brokers", "Brokers alive, as this one knows", len(node.image.brokers)),
        ("ottla_controller_active", "1 on the controller", int(active)),
        ("ottla_partitions_led", "Partitions that this broker leads", len(led)),
        (
            "ottla_partitions_under_replicated",
            "Partitions led here with replicas that are not in sync",
            sum(len(each.state.isr) < len(each.state.replicas) for each in led if each.state),
        ),
        (
            "ottla_partitions_offline",
            "Partitions of the cluster without a leader; on the controller, else 0",
            sum(
                state.leader == NO_LEADER
                for topic in node.image.topics.values()
                for state in topic.partitions
            )
            if active
            else 0,
        ),
    ):
        yield GaugeMetricFamily(name, text, value=value)
    yield CounterMetricFamily(
        "ottla_truncated_records",
        "Records that the leader lacked",
        value=cut.records,
    )
    yield CounterMetricFamily(
        "ottla_truncated_committed_records",
        "Of these, what was committed: lost in unclean elections",
        value=cut.committed_records,
    )


def _of_topics(node: Node) -> Iterable[Metric]:
    labels = ["topic"]
    bytes_in = CounterMetricFamily("ottla_topic_bytes_in", "Bytes appended", labels=labels)
    bytes_out = CounterMetricFamily("ottla_topic_bytes_out", "Bytes fetched", labels=labels)
    batches = CounterMetricFamily("ottla_topic_batches_in", "Batches appended", labels=labels)
    records = CounterMetricFamily("ottla_topic_records_in", "Records appended", labels=labels)
    for topic in node.partitions.topics():
        partitions = node.partitions.of_topic(topic)
        bytes_in.add_metric([topic], sum(each.counts.bytes_in for each in partitions))
        bytes_out.add_metric([topic], sum(each.counts.bytes_out for each in partitions))
        batches.add_metric([topic], sum(each.counts.batches_in for each in partitions))
        records.add_metric([topic], sum(each.counts.records_in for each in partitions))
    yield from (bytes_in, bytes_out, batches, records)
    labels = ["topic", "partition"]
    end = GaugeMetricFamily("ottla_partition_end_offset", "Log end offset", labels=labels)
    start = GaugeMetricFamily("ottla_partition_start_offset", "Log start offset", labels=labels)
    for each in node.partitions:
        where = [each.topic, str(each.index)]
        end.add_metric(where, each.log.end_offset)
        start.add_metric(where, each.log.start_offset)
    yield from (end, start)
    yield from _of_transactions(node)


def _of_transactions(node: Node) -> Iterable[Metric]:
    """Of the partitions with producers in memory: others had no append since the start."""
    labels = ["topic", "partition"]
    lag = GaugeMetricFamily(
        "ottla_partition_last_stable_lag",
        "Committed records that read_committed does not read yet",
        labels=labels,
    )
    hanging = GaugeMetricFamily(
        "ottla_partition_hanging_transactions",
        "Open transactions that their coordinator should have ended; see kafka-transactions.sh",
        labels=labels,
    )
    now_ms, timeout_ms = node.clock.now_ms(), node.config.transaction_max_timeout_ms
    for each in node.partitions:
        producers = each.log.loaded_producers
        if producers is not None:
            where = [each.topic, str(each.index)]
            lag.add_metric(where, each.high_watermark - each.last_stable_offset)
            hanging.add_metric(where, producers.hanging_transactions(now_ms, timeout_ms))
    yield from (lag, hanging)


def serve_metrics(node: Node, watchdog: LoopWatchdog, host: str, port: int) -> WSGIServer:
    """Answers GET /metrics in a thread of its own until `shutdown()`. Raises OSError."""
    registry = CollectorRegistry()
    registry.register(BrokerCollector(node, watchdog, asyncio.get_running_loop()))
    server, _ = start_http_server(port, addr=host, registry=registry)
    return server
