"""The settings of a broker: static at the start, dynamic at runtime (KIP-226)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from ottla.config import (
    broker_authorizer,
    broker_cluster,
    broker_groups,
    broker_log,
    broker_security,
    broker_server,
    broker_share,
    broker_share_groups,
    broker_streams_groups,
    broker_transactions,
)
from ottla.config.broker_websocket import WEBSOCKET_LISTENERS, check_origins
from ottla.config.error import ConfigError, invalid_value
from ottla.config.group_bounds import check_defaults
from ottla.config.inert import INERT, INERT_OF_ONE_BROKER
from ottla.config.listener import Endpoint, check_advertised, parse_endpoints
from ottla.config.listener_security import (
    BETWEEN_BROKERS,
    DYNAMIC_STORES,
    PREFIX,
    ListenerSecurity,
    check_dynamic_of_listener,
    is_of_listener,
    tls_options,
    without_listener,
)
from ottla.config.listener_tokens import oauthbearer_options, token_login
from ottla.config.setting import Update
from ottla.config.unneeded import UNNEEDED, RefusedSettings, unneeded_reason
from ottla.config.value import parse_list
from ottla.security.sasl.mechanism import OAUTHBEARER
from ottla.security.sasl.scram_users import parse_scram_users
from ottla.wording.nearest import nearest

INTER_BROKER_LISTENER: Final = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROLLER_LISTENERS: Final = "controller.listener.names"
INTERNAL_TOPIC_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
RETENTION_TIMES: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""Each overrides those after it."""
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z\-%._:]+)\Z", re.ASCII)
"""The characters of Utils.validHostPattern; an IPv6 address may have brackets."""


class Reconfigured(NamedTuple):
    """What `BrokerConfig.reconfigure` did."""

    changed: tuple[str, ...] = ()
    """The names whose values have changed."""
    ignored: tuple[str, ...] = ()
    """The reason for each setting that this broker cannot take."""


class BrokerConfig(
    broker_server.ListenerSettings,
    broker_server.ConnectionSettings,
    broker_server.TopicCreationSettings,
    broker_server.ProducerSettings,
    broker_server.GroupSettings,
    broker_groups.ConsumerGroupSettings,
    broker_share_groups.ShareGroupSettings,
    broker_streams_groups.StreamsGroupSettings,
    broker_transactions.TransactionSettings,
    broker_share.ShareCoordinatorSettings,
    broker_server.OwnSettings,
    broker_cluster.ZooKeeperSettings,
    broker_cluster.ReplicationSettings,
    broker_cluster.ThrottleSettings,
    broker_cluster.QuotaSettings,
    broker_cluster.LeadershipSettings,
    broker_log.FolderSettings,
    broker_log.SegmentSettings,
    broker_log.RetentionSettings,
    broker_log.TimestampSettings,
    broker_security.InterBrokerSettings,
    broker_security.TlsSettings,
    broker_security.SaslSettings,
    broker_security.OauthbearerSettings,
    broker_security.TokenLoginSettings,
    broker_security.AuthenticationSettings,
    broker_authorizer.AuthorizerSettings,
    RefusedSettings,
):
    """Every broker setting as an attribute with its name, dots as underscores.

    An attribute has the current value: `reconfigure` changes it in place, so that holders of the
    object see dynamic changes on their next access. `version` grows with each change, for derived
    values.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """Parse the given texts. Raises ConfigError, one line, for the first invalid one."""
        self.given: dict[str, str] = dict(given or {})
        self.cluster_dynamic: dict[str, str] = {}
        self.broker_dynamic: dict[str, str] = {}
        self.listener_dynamic: dict[str, str] = {}
        """Of both, those of single listeners."""
        self.notes: tuple[str, ...] = _check_names(self.given)
        self.version = 0
        self.load(self.given)
        self._check_together()
        self._limits = _connection_limits(self.max_connections_per_ip_overrides)
        self.endpoints: tuple[Endpoint, ...] = self._parse("listeners", self.listeners)
        if not self.endpoints:
            reason = "All are in controller.listener.names; clients need one"
            raise invalid_value("listeners", ",".join(self.listeners), reason)
        self.advertised_endpoints: tuple[Endpoint, ...] = self._parse(
            "advertised.listeners", self.advertised_listeners or ()
        )
        check_advertised(self.advertised_endpoints, self.endpoints)
        self._check_inter_broker_listener()
        self._check_listeners()
        try:
            parse_scram_users(self.ottla_first_users or "")
        except ValueError as error:
            raise ConfigError(f"ottla.first.users: {error}") from None

    @classmethod
    def from_properties(cls, given: Mapping[str, str]) -> Self:
        """The settings for exactly these properties. Raises ConfigError."""
        return cls(given)

    @property
    def data_folder(self) -> Path:
        """The data folder."""
        return Path(self.log_dirs[0] if self.log_dirs else self.log_dir)

    @property
    def id(self) -> int:
        """The id of this broker (node.id, or broker.id if only that is given)."""
        return self.broker_id if self.broker_id >= 0 else self.node_id

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that other brokers connect to."""
        named = self.inter_broker_listener_name
        if named is not None:
            return named.upper()
        if INTER_BROKER_PROTOCOL in self.given:
            return self.security_inter_broker_protocol
        return self.endpoints[0].name

    def security_of(self, listener: str) -> ListenerSecurity:
        """The settings of one listener."""
        return self._security_of(listener, self.listener_dynamic)

    def security_with(self, listener: str, broker: Mapping[str, str]) -> ListenerSecurity:
        """The settings of one listener if these were the broker's own dynamic ones."""
        return self._security_of(listener, _of_listeners(self.cluster_dynamic, broker))

    def _security_of(self, listener: str, dynamic: Mapping[str, str]) -> ListenerSecurity:
        found = next((each for each in self.endpoints if each.name == listener.upper()), None)
        has_sasl = bool(found and found.has_sasl)
        return ListenerSecurity({**self.given, **dynamic}, listener, has_sasl=has_sasl)

    def asks_who(self, endpoint: Endpoint) -> bool:
        """Whether clients of this listener must show who they are."""
        security = self.security_of(endpoint.name)
        return endpoint.has_sasl or (endpoint.has_tls and security.ssl_client_auth == "required")

    def speaks_websocket(self, listener: str) -> bool:
        """Whether the clients of a listener speak WebSocket."""
        return listener.upper() in map(str.upper, self.ottla_websocket_listeners)

    def _check_inter_broker_listener(self) -> None:
        names = [endpoint.name for endpoint in self.endpoints]
        given, setting = self.inter_broker_listener_name, INTER_BROKER_LISTENER
        if INTER_BROKER_PROTOCOL in self.given:
            if given is not None:
                both = f"{INTER_BROKER_LISTENER} and {INTER_BROKER_PROTOCOL}"
                raise ConfigError(f"Only one of {both} should be set.")
            given, setting = self.security_inter_broker_protocol, INTER_BROKER_PROTOCOL
        if self.inter_broker_listener not in names:
            reason = f"No such listener in listeners ({', '.join(sorted(names))})"
            raise invalid_value(setting, given, reason)
        chosen = self.endpoints[names.index(self.inter_broker_listener)]
        if self.zookeeper_connect and chosen.has_sasl:
            mechanism = self.sasl_mechanism_inter_broker_protocol
            if mechanism not in BETWEEN_BROKERS:
                reason = f"Set it to any of {', '.join(BETWEEN_BROKERS)}"
                raise invalid_value("sasl.mechanism.inter.broker.protocol", mechanism, reason)
            security = self.security_of(chosen.name)
            if mechanism == OAUTHBEARER:
                token_login(self.given, security)
            else:
                security.login_options(mechanism)

    def _check_listeners(self) -> None:
        """Raise ConfigError for settings of a listener that cannot be together."""
        names = {endpoint.name for endpoint in self.endpoints}
        for name in self.ottla_websocket_listeners:
            if name.upper() not in names:
                reason = f"No such listener in listeners ({', '.join(sorted(names))})"
                raise invalid_value(WEBSOCKET_LISTENERS, name, reason)
        if self.zookeeper_connect and self.speaks_websocket(self.inter_broker_listener):
            reason = f"Brokers do not speak WebSocket: give another {INTER_BROKER_LISTENER}"
            raise invalid_value(WEBSOCKET_LISTENERS, self.inter_broker_listener, reason)
        for endpoint in self.endpoints:
            security = self.security_of(endpoint.name)
            check_origins(security.ottla_websocket_origins)
            if endpoint.has_tls:
                tls_options(security)
            if endpoint.has_sasl:
                security.check_mechanisms()
                if OAUTHBEARER in security.sasl_enabled_mechanisms:
                    oauthbearer_options(self.given, security)

    def connection_limits(self) -> dict[str, int]:
        """max.connections.per.ip.overrides by host, in one object that follows dynamic changes."""
        return self._limits

    def reconfigure(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> Reconfigured:
        """Apply the dynamic settings of the cluster and of this broker.

        A broker's own dynamic setting overrides the cluster's, which overrides the static one.
        Settings that this broker cannot take are ignored, the others apply. Kafka, too, leaves out
        those that are invalid or not dynamic (DynamicBrokerConfig.fromPersistentProps); but one
        that is in conflict with the static settings disables all others there.
        """
        ignored: list[str] = []
        layers = (_usable(cluster, ignored, per_broker=False), _usable(broker, ignored))
        candidate = self._with_compatible(layers, ignored)
        of_listeners = self._usable_of_listeners(layers, ignored)
        changed = [name for name in self.definitions if candidate.value(name) != self.value(name)]
        self.cluster_dynamic, self.broker_dynamic = layers
        for name in changed:
            self.__dict__[self._attributes[name]] = candidate.value(name)
        changed += sorted(
            name
            for name in {*of_listeners, *self.listener_dynamic}
            if of_listeners.get(name) != self.listener_dynamic.get(name)
        )
        self.listener_dynamic = of_listeners
        if changed:
            self.version += 1
            self._limits.clear()
            self._limits.update(_connection_limits(self.max_connections_per_ip_overrides))
        return Reconfigured(tuple(changed), tuple(ignored))

    def _usable_of_listeners(
        self, layers: Sequence[dict[str, str]], ignored: list[str]
    ) -> dict[str, str]:
        """The dynamic settings of single listeners; drops those of a listener that cannot be
        together.
        """
        prefixes = tuple(f"{PREFIX}{each.name}.".lower() for each in self.endpoints)
        for layer in layers:
            for name in _of_listeners(layer):
                if not name.lower().startswith(prefixes):
                    del layer[name]
                    ignored.append(f"{name}: this broker has no such listener")
        for endpoint in self.endpoints:
            given = _of_listeners(*layers)
            prefix = f"{PREFIX}{endpoint.name}.".lower()
            try:
                security = self._security_of(endpoint.name, given)
                if endpoint.has_tls:
                    tls_options(security)
            except ConfigError as error:
                for layer in layers:
                    for name in [each for each in layer if each.lower().startswith(prefix)]:
                        del layer[name]
                        ignored.append(f"{name}: {error}")
        return _of_listeners(*layers)

    def _with_compatible(self, layers: Sequence[dict[str, str]], ignored: list[str]) -> Self:
        """A copy with these layers of dynamic settings; drops those that contradict the others."""
        try:
            return self._with([each for layer in layers for each in layer.items()])
        except ConfigError:
            pass
        taken: list[tuple[str, str]] = []
        waiting = [(layer, name) for layer in layers for name in layer]
        reasons: dict[str, str] = {}
        takes_more = True
        while takes_more:  # what is in conflict now may be valid with a later one
            takes_more = False
            for layer, name in list(waiting):
                try:
                    self._with([*taken, (name, layer[name])])
                except ConfigError as error:
                    reasons[name] = str(error)
                    continue
                taken.append((name, layer[name]))
                waiting.remove((layer, name))
                takes_more = True
        for layer, name in waiting:
            del layer[name]
            ignored.append(f"{name}: {reasons[name]}")
        return self._with(taken)

    def _with(self, dynamic: Sequence[tuple[str, str]]) -> Self:
        """A copy with these dynamic settings, the later ones in force. Raises ConfigError."""
        copy = type(self).__new__(type(self))
        copy.given = self.given
        copy.load({**self.given, **dict(dynamic)})
        copy._check_together()
        return copy

    def listens_on(self, bound: Sequence[Endpoint], advertised: Sequence[Endpoint]) -> None:
        """Replace the configured listeners with the actual addresses, for DescribeConfigs.

        Port 0 becomes the port that the system chose. Advertised listeners are set even if they
        follow from the listeners.
        """
        for name, endpoints in (("listeners", bound), ("advertised.listeners", advertised)):
            texts = tuple(map(str, endpoints))
            self.given[name] = ",".join(texts)
            self.__dict__[self._attributes[name]] = texts

    def _parse(self, setting: str, addresses: tuple[str, ...]) -> tuple[Endpoint, ...]:
        # There is no KRaft quorum, and clients must not connect to its listeners (KIP-631).
        quorum = parse_list(self.given.get(CONTROLLER_LISTENERS, "").upper())
        addresses = tuple(
            each for each in addresses if each.partition("://")[0].upper() not in quorum
        )
        protocols = self.listener_security_protocol_map.split(",")
        return parse_endpoints(setting, addresses, protocols)

    def _check_together(self) -> None:
        """Checks settings that are valid alone but not together."""
        if self.log_dirs is not None and len(self.log_dirs) > 1:
            raise invalid_value("log.dirs", ",".join(self.log_dirs), "Only one folder is supported")
        for name in ("log.dir", "log.dirs"):
            if not self.value(name) and self.value(name) is not None:
                raise ConfigError(f"Configuration '{name}' must not be empty.")
        if not self.listeners:
            raise invalid_value("listeners", "", "At least one listener must be given")
        if self.broker_id >= 0 and "node.id" in self.given and self.broker_id != self.node_id:
            raise invalid_value("broker.id", self.broker_id, f"node.id is {self.node_id}")
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ConfigError(
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) must not be "
                f"above group.max.session.timeout.ms ({self.group_max_session_timeout_ms})"
            )
        check_defaults(self)
        self._check_retention()
        if self.log_cleaner_min_compaction_lag_ms > self.log_cleaner_max_compaction_lag_ms:
            raise ConfigError(
                "log.cleaner.min.compaction.lag.ms "
                f"({self.log_cleaner_min_compaction_lag_ms}) must not be above "
                f"log.cleaner.max.compaction.lag.ms ({self.log_cleaner_max_compaction_lag_ms})"
            )
        for name in INTERNAL_TOPIC_FACTORS:
            if getattr(self, name.replace(".", "_")) == 0:
                raise invalid_value(name, 0, "Value must be -1 or above 0")
        # As in KafkaConfig: fetches that wait longer than the lag would drop followers from the
        # ISR.
        if self.replica_fetch_wait_max_ms > self.replica_lag_time_max_ms:
            raise ConfigError(
                f"replica.fetch.wait.max.ms ({self.replica_fetch_wait_max_ms}) must not be above "
                f"replica.lag.time.max.ms ({self.replica_lag_time_max_ms})"
            )
        if self.replica_fetch_wait_max_ms > self.replica_socket_timeout_ms:
            raise ConfigError(
                f"replica.socket.timeout.ms ({self.replica_socket_timeout_ms}) must not be below "
                f"replica.fetch.wait.max.ms ({self.replica_fetch_wait_max_ms})"
            )
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise ConfigError(
                f"queued.max.request.bytes ({self.queued_max_request_bytes}) must not be below "
                f"socket.request.max.bytes ({self.socket_request_max_bytes})"
            )
        overrides = _connection_limits(self.max_connections_per_ip_overrides)
        if self.max_connections_per_ip == 0 and not overrides:
            raise ConfigError(
                "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides"
                " property is set."
            )

    def _check_retention(self) -> None:
        """As in KafkaConfig: with a retention of 0, records would be deleted at once."""
        for name in RETENTION_TIMES:
            value = self.value(name)
            if value == 0:
                raise invalid_value(name, 0, "Value must be unlimited (-1) or at least 1")
            if value is not None:
                return  # it overrides the others


def _connection_limits(text: str) -> dict[str, int]:
    """Parse max.connections.per.ip.overrides: host to limit. Raises ConfigError."""
    limits: dict[str, int] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        host, colon, number = pair.rpartition(":")
        if not colon or not _HOST.match(host) or not number.isdecimal():
            reason = "Expected host:number, comma-separated"
            raise invalid_value("max.connections.per.ip.overrides", pair, reason)
        limits[host.strip("[]")] = int(number)
    return limits


def _of_listeners(*layers: Mapping[str, str]) -> dict[str, str]:
    return {name: text for layer in layers for name, text in layer.items() if is_of_listener(name)}


DYNAMIC_NAMES: Final = frozenset(
    name
    for name, definition in BrokerConfig.definitions.items()
    if definition.update is not Update.READ_ONLY
)


def check_dynamic(given: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError unless all of them may be changed at runtime, at that level.

    Unknown names are accepted: in Kafka they may belong to a plugin (DynamicBrokerConfig).
    """
    general = [name for name in given if name in DYNAMIC_STORES]
    if general:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{', '.join(general)}]"
        )
    static = [name for name in given if _is_static(name)]
    if static:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(static)}]")
    if not per_broker:
        own = [name for name in given if _is_of_one_broker(name)]
        if own:
            raise ConfigError(
                "Cannot update these configs at default cluster level, broker id must be "
                f"specified: [{', '.join(own)}]"
            )
    for name, text in given.items():
        if name in INERT:
            INERT[name].parse(text)
        elif name in DYNAMIC_NAMES:
            BrokerConfig.definitions[name].parse(text)
        elif is_of_listener(name):
            check_dynamic_of_listener(name, text, per_broker=per_broker)


def _usable(
    given: Mapping[str, str], ignored: list[str], *, per_broker: bool = True
) -> dict[str, str]:
    """Those that `check_dynamic` accepts; the reasons for the others are added to `ignored`."""
    found: dict[str, str] = {}
    for name, text in given.items():
        try:
            check_dynamic({name: text}, per_broker=per_broker)
        except ConfigError as error:
            ignored.append(str(error) if name in str(error) else f"{name}: {error}")
        else:
            found[name] = text
    return found


def _is_static(name: str) -> bool:
    return (
        name not in DYNAMIC_NAMES
        and name not in INERT
        and not is_of_listener(name)
        and is_known(name)
    )


def _is_of_one_broker(name: str) -> bool:
    if name in INERT:
        return name in INERT_OF_ONE_BROKER
    return name in DYNAMIC_NAMES and BrokerConfig.definitions[name].update is Update.PER_BROKER


def is_known(name: str) -> bool:
    """Whether this is a broker setting of Kafka or Ottla, with or without effect."""
    return (
        name in BrokerConfig.definitions
        or unneeded_reason(name) is not None
        or is_of_listener(name)
    )


def unknown_name(name: str, known: Iterable[str]) -> str:
    """The message for an unknown setting, with the most similar name."""
    bare = without_listener(name)
    near = nearest(bare, known)
    hint = f"; did you mean {name.removesuffix(bare)}{near}?" if near else ""
    return f"Unknown setting {name}{hint}"


def _check_names(given: Mapping[str, str]) -> tuple[str, ...]:
    """Raise ConfigError for unknown names; return a line for each reason why some have no effect.

    A stock server.properties has a dozen of them: one line each would bury other warnings.
    """
    without: dict[str, list[str]] = {}
    for name in given:
        if name in BrokerConfig.definitions or is_of_listener(name):
            continue
        reason = unneeded_reason(without_listener(name))
        if reason is None:
            raise ConfigError(unknown_name(name, [*BrokerConfig.definitions, *UNNEEDED]))
        without.setdefault(reason, []).append(name)
    return tuple(f"No effect: {', '.join(names)} ({reason})" for reason, names in without.items())
