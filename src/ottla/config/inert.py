"""Settings that Kafka can change at runtime and that have no effect here.

Kafka's tools set them, and a tree that Kafka wrote has them (DynamicBrokerConfig of 3.9 and 4.3:
the sets of the log cleaner, the thread pools, the socket server, the log configs, replication,
quotas, tiered storage and the coordinators; of the listeners, those of Kerberos, which no listener
takes). They are accepted, checked and described. Other settings that Kafka changes at runtime to
secure its listeners are not here: they must not be ignored in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.setting import Setting
from ottla.config.unneeded import UNNEEDED
from ottla.config.value import ConfigType

_INTS: Final = """
    background.threads log.cleaner.io.buffer.size log.cleaner.threads
    num.io.threads num.network.threads
    num.recovery.threads.per.data.dir group.coordinator.cached.buffer.max.bytes
    share.coordinator.cached.buffer.max.bytes
    remote.fetch.max.wait.ms remote.log.manager.copier.thread.pool.size
    remote.log.manager.expiration.thread.pool.size remote.log.manager.follower.thread.pool.size
    remote.log.reader.threads
"""
_LONGS: Final = """
    log.cleaner.dedupe.buffer.size log.message.timestamp.difference.max.ms
    remote.list.offsets.request.timeout.ms
    remote.log.index.file.cache.total.size.bytes remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.fetch.max.bytes.per.second replica.alter.log.dirs.io.max.bytes.per.second
    sasl.kerberos.min.time.before.relogin
"""
_DOUBLES: Final = """
    log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
"""
_STRINGS: Final = "sasl.kerberos.kinit.cmd sasl.kerberos.service.name"
_BOOLEANS: Final = "follower.fetch.last.tiered.offset.enable log.message.downconversion.enable"
_LISTS: Final = "metric.reporters sasl.kerberos.principal.to.local.rules"

_KINDS: Final = (
    (_INTS, ConfigType.INT),
    (_LONGS, ConfigType.LONG),
    (_DOUBLES, ConfigType.DOUBLE),
    (_BOOLEANS, ConfigType.BOOLEAN),
    (_STRINGS, ConfigType.STRING),
    (_LISTS, ConfigType.LIST),
)

INERT: Final[Mapping[str, Setting[object]]] = {
    name: Setting[object](name, kind, None, f"No effect: {UNNEEDED[name]}.")
    for names, kind in _KINDS
    for name in names.split()
}
"""These settings, by name."""
INERT_OF_ONE_BROKER: Final = frozenset(name for name in INERT if name.startswith("sasl.kerberos."))
"""Those that Kafka refuses as a default of all brokers."""
