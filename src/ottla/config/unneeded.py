"""Kafka's settings that have no effect here, with the reason.

A standard server.properties contains some of them, so they are accepted with a note. Settings that
are dangerous to ignore (a policy) are rejected instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.setting import Settings, optional_string, words
from ottla.config.validator import only


class RefusedSettings(Settings):
    """Settings that must not be ignored silently: they restrict access."""

    create_topic_policy_class_name = optional_string(
        "create.topic.policy.class.name",
        "Class that decides which topics can be created.",
        only("", "Policies are not supported; leave it empty"),
    )
    alter_config_policy_class_name = optional_string(
        "alter.config.policy.class.name",
        "Class that decides which settings can be changed.",
        only("", "Policies are not supported; leave it empty"),
    )
    client_quota_callback_class = optional_string(
        "client.quota.callback.class",
        "Class that decides the quotas of clients.",
        only("", "Quota callbacks are not supported; leave it empty"),
    )
    config_providers = words(
        "config.providers",
        (),
        "Providers of values written as ${provider:key}.",
        only((), "Config providers are not supported; write the values directly"),
    )


_ZOOKEEPER: Final = """
    zookeeper.clientCnxnSocket zookeeper.max.in.flight.requests
    zookeeper.metadata.migration.enable zookeeper.metadata.migration.min.batch.size
    zookeeper.set.acl
    zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
    zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
    zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
    zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
    zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type
"""
_QUORUM: Final = """
    broker.heartbeat.interval.ms broker.session.timeout.ms control.plane.listener.name
    controller.listener.names controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.append.linger.ms
    controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.socket.timeout.ms
    early.start.listeners eligible.leader.replicas.enable initial.broker.registration.timeout.ms
    internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.max.batch.size.in.bytes metadata.log.dir
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.min.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
    process.roles server.max.startup.time.ms unstable.api.versions.enable
    unstable.feature.versions.enable
"""
_THREADS: Final = """
    background.threads cordoned.log.dirs delete.records.purgatory.purge.interval.requests
    fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.consumer.assignor.offload.enable group.coordinator.threads
    group.share.assignor.offload.enable group.streams.assignor.offload.enable
    log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads
    log.dir.failure.timeout.ms num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
    offsets.load.buffer.size producer.purgatory.purge.interval.requests
    queued.max.requests share.coordinator.append.linger.ms
    share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
    share.coordinator.threads share.fetch.purgatory.purge.interval.requests
    transaction.state.log.load.buffer.size
"""
_GROUPS: Final = """
    group.coordinator.rebalance.protocols
    group.share.dlq.manager.class.name group.share.persister.class.name
"""
_STREAMS: Final = """
    group.streams.assignors
    group.streams.max.warmup.replicas group.streams.num.warmup.replicas
    group.streams.rack.aware.assignment.tags
"""
_DESCRIPTIONS: Final = """
    group.streams.topology.description.plugin.class
"""
_AUDIENCES: Final = """
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
"""
_TRANSACTIONS: Final = """
    transaction.two.phase.commit.enable
"""
_REPLICATION: Final = """
    request.timeout.ms
    alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds
    follower.fetch.last.tiered.offset.enable
    replica.alter.log.dirs.io.max.bytes.per.second replica.socket.receive.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    unclean.leader.election.interval.ms
"""
_SECURITY: Final = """
    delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delegation.token.secret.key
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.server.callback.handler.class
"""
_JAVA: Final = """
    password.encoder.cipher.algorithm password.encoder.iterations
    password.encoder.key.length password.encoder.keyfactory.algorithm
    password.encoder.old.secret password.encoder.secret principal.builder.class
    security.providers ssl.engine.factory.class
    ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm
"""
_TIERED: Final = """
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
    remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
    remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
    remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
    remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
    remote.log.reader.threads remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
"""
_METRICS: Final = """
    auto.include.jmx.reporter kafka.metrics.polling.interval.secs kafka.metrics.reporters
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    telemetry.max.bytes
"""
_CHECKPOINTS: Final = """
    log.flush.start.offset.checkpoint.interval.ms
"""
_COMMITS: Final = """
    offsets.topic.compression.codec share.coordinator.state.topic.compression.codec
"""
_OLD: Final = """
    broker.id.generation.enable inter.broker.protocol.version log.message.downconversion.enable
    log.message.format.version log.message.timestamp.difference.max.ms
    offsets.commit.required.acks reserved.broker.max.id
"""

_REASONS: Final = (
    (_ZOOKEEPER, "connections to ZooKeeper use neither TLS nor ACLs"),
    (_QUORUM, "KRaft: a broker alone needs no quorum, and a cluster uses zookeeper.connect"),
    (_THREADS, "one event loop processes all requests, so these threads and buffers do not exist"),
    (
        _GROUPS,
        "the share coordinator keeps the state of share groups; features say which groups exist",
    ),
    (_STREAMS, "streams groups work as with the defaults of these"),
    (_DESCRIPTIONS, "the coordinator keeps descriptions of topologies itself (KIP-1331)"),
    (
        _AUDIENCES,
        "tokens are checked for sasl.oauthbearer.expected.audience and .issuer where these are set",
    ),
    (_TRANSACTIONS, "two-phase commit (KIP-939) is not supported"),
    (
        _REPLICATION,
        "not needed: there is one folder, one fetch loop per leader, and elections are immediate",
    ),
    (
        _SECURITY,
        "there are neither Kerberos nor delegation tokens, a broker gets its token of OAUTHBEARER "
        "with a secret or from a file, and what belongs to a mechanism has its name: "
        "listener.name.<listener>.plain.sasl.jaas.config",
    ),
    (_JAVA, "Python's TLS has none of these parts of Java's, and no password is kept encrypted"),
    (_TIERED, "tiered storage is not supported"),
    (_METRICS, "metrics come from ottla.metrics.listener, not from Java reporters"),
    (_CHECKPOINTS, "log start offsets are written with log.flush.offset.checkpoint.interval.ms"),
    (_COMMITS, "offset commits and the states of share groups are written uncompressed"),
    (_OLD, "the setting belongs to older versions of Kafka"),
)

UNNEEDED: Final[Mapping[str, str]] = {
    name: reason for names, reason in _REASONS for name in names.split()
}
"""The names of these settings, and why they have no effect."""

_PREFIXES: Final = {
    "rlmm.config.": "tiered storage is not supported",
    "rsm.config.": "tiered storage is not supported",
}


def unneeded_reason(name: str) -> str | None:
    """Why a setting of Kafka has no effect here; None for any other name."""
    reason = UNNEEDED.get(name)
    if reason is None:
        for prefix, prefix_reason in _PREFIXES.items():
            if name.startswith(prefix):
                return prefix_reason
    return reason
