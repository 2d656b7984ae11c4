"""One broker of this comparison: its administrator, its client, and what is compared."""

from __future__ import annotations

import dataclasses
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from conformance.authorization.given import TOPICS, Given
from conformance.authorization.requests import requests_of
from conformance.authorization.situations import Situation
from ottla.client import wire
from ottla.client.addresses import addresses
from ottla.client.errors import ClosedError, NoAnswerError
from ottla.client.login import authenticate
from ottla.client.security import Sasl
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission

ADMIN: Final = "root"
WITNESS: Final = "witness"
"""Its own ACL is the last one: once the broker goes by it, it goes by all others."""
WAIT_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.02
DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
ANY: Final = 1
RETRIED: Final = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Every client asks again, and how often it has to depends on the time."""
IDENTITIES: Final = (
    "name",
    "topic",
    "topic_name",
    "group_id",
    "transactional_id",
    "key",
    "user",
    "feature",
)
"""Fields that say which of a list's elements one is."""
OPERATIONS: Final = "authorized_operations"
CLOSED: Final[Mapping[str, Any]] = {"the connection": ["is closed"]}
_OF_A_SITUATION: Final = re.compile(r"s\d+-")


class NotInTimeError(Exception):
    """The broker does not reach the state that a situation begins with."""


class Login:
    """A connection of one user, opened at first use and again after the broker closed it."""

    def __init__(self, address: str, user: str) -> None:
        (self._address,) = addresses(address)
        self._sasl = Sasl("PLAIN", user, user)
        self._wire: wire.Wire | None = None

    def ask(self, request: Any) -> Any:
        """The response, once it is not one to ask again. Raises ClosedError, NotInTimeError."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            response = self._once(request)
            if response is None or not all_codes(response) & RETRIED:
                return response
            if time.monotonic() > until:
                raise NotInTimeError(f"{response!r}")
            time.sleep(PAUSE_SECONDS)

    def _once(self, request: Any) -> Any:
        if self._wire is None:
            connection = socket.create_connection(self._address, WAIT_SECONDS)
            self._wire = wire.Wire(connection, self._address, "differential")
            authenticate(self._wire, self._sasl, WAIT_SECONDS)
        try:
            return self._wire.ask(request, WAIT_SECONDS)
        except (NoAnswerError, ClosedError):
            self.close()
            raise

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class Asked:
    """One broker. `for_everyone`: whether it allows what no ACL names."""

    def __init__(self, address: str, *, for_everyone: bool) -> None:
        self._address = address
        self._for_everyone = for_everyone
        self._admin, self._witness = Login(address, ADMIN), Login(address, WITNESS)
        self._logins = [self._admin, self._witness]

    def close(self) -> None:
        for login in self._logins:
            login.close()

    def answers(self, number: int, situation: Situation) -> dict[str, Mapping[str, Any]]:
        """What the client gets, by request. Raises NotInTimeError, NoAnswerError."""
        prefix = f"s{number}"
        given = Given(
            prefix, {f"{prefix}-{word}": self._topic(f"{prefix}-{word}") for word in TOPICS}
        )
        self._use(given)
        self._allow(given, situation.acls(given))
        client = Login(self._address, situation.user)
        self._logins.append(client)
        found: dict[str, Mapping[str, Any]] = {}
        for label, request in requests_of(given, every=situation.every_version):
            try:
                found[label] = shown(client.ask(request), prefix)
            except ClosedError:
                found[label] = CLOSED
        self._forget()
        client.close()
        return found

    def _topic(self, name: str) -> Any:
        """Makes the topic; returns its id once it has a leader."""
        build = messages_of(19, 7, "request")
        topic = build.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
        )
        made = self._admin.ask(build.CreateTopicsRequest(topics=(topic,), timeout=10_000))
        (created,) = made.topics
        assert created.error_code is ErrorCode.none, created
        build = messages_of(2, 4, "request")
        partition = build.ListOffsetsPartition(partition_index=0, timestamp=-1)
        wanted = build.ListOffsetsTopic(name=name, partitions=(partition,))
        request = build.ListOffsetsRequest(replica_id=-1, topics=(wanted,))
        _until(
            f"{name} has a leader",
            lambda: all_codes(self._admin.ask(request)) == {ErrorCode.none},
        )
        return created.topic_id

    def _use(self, given: Given) -> None:
        """A committed offset, and a transactional id that is known. The first ones also make the
        coordinators' topics.
        """
        for key, word in ((0, "g"), (1, "x")):
            request = messages_of(10, 3, "request").FindCoordinatorRequest(
                key=given.name(word), key_type=key
            )
            self._admin.ask(request)
        build = messages_of(8, 8, "request")
        partition = build.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        topic = build.OffsetCommitRequestTopic(name=given.name("t"), partitions=(partition,))
        commit = build.OffsetCommitRequest(
            group_id=given.name("g"), generation_id_or_member_epoch=-1, topics=(topic,)
        )
        init = messages_of(22, 4, "request").InitProducerIdRequest(
            transactional_id=given.name("x"),
            transaction_timeout=10_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        for request in (commit, init):
            codes = all_codes(self._admin.ask(request))
            assert codes == {ErrorCode.none}, codes

    def _allow(self, given: Given, acls: Sequence[Acl]) -> None:
        """Makes the ACLs, and waits until broker and controller go by them."""
        name = given.name("seen")
        permission = Permission.DENY if self._for_everyone else Permission.ALLOW
        entry = Entry(f"User:{WITNESS}", "*", Operation.ALL, permission)
        last = Acl(Pattern(Resource.TOPIC, name, PatternType.LITERAL), entry)
        build = messages_of(30, 3, "request")
        creations = tuple(
            build.AclCreation(
                resource_type=pattern.resource,
                resource_name=pattern.name,
                resource_pattern_type=pattern.type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in (*acls, last)
        )
        codes = all_codes(self._admin.ask(build.CreateAclsRequest(creations=creations)))
        assert codes == {ErrorCode.none}, codes
        _until(f"{name} is seen", lambda: self._is_seen(name))

    def _is_seen(self, name: str) -> bool:
        build = messages_of(DESCRIBE_CONFIGS, 4, "request")
        one = build.DescribeConfigsResource(resource_type=2, resource_name=name)
        by_broker = build.DescribeConfigsRequest(resources=(one,))
        build = messages_of(INCREMENTAL_ALTER_CONFIGS, 1, "request")
        config = build.AlterableConfig(name="retention.ms", value="1")
        other = build.AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
        by_controller = build.IncrementalAlterConfigsRequest(resources=(other,), validate_only=True)
        denied = [
            ErrorCode.topic_authorization_failed in all_codes(self._witness.ask(request))
            for request in (by_broker, by_controller)
        ]
        return denied == [self._for_everyone] * 2

    def _forget(self) -> None:
        """Deletes all ACLs: the next situation's last one comes after that."""
        build = messages_of(31, 3, "request")
        everything = build.DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        codes = all_codes(self._admin.ask(build.DeleteAclsRequest(filters=(everything,))))
        assert codes == {ErrorCode.none}, codes


def _until(what: str, is_so: Callable[[], bool]) -> None:
    """Raises NotInTimeError."""
    until = time.monotonic() + WAIT_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise NotInTimeError(f"it is not so that {what}")
        time.sleep(PAUSE_SECONDS)


def all_codes(message: Any) -> set[ErrorCode]:
    """All error codes in a response."""
    codes = {code for codes in shown(message, None).values() for code in codes if code in _NAMES}
    return {ErrorCode[code] for code in codes}


_NAMES: Final = ErrorCode.__members__


def shown(message: Any, prefix: str | None) -> dict[str, Any]:
    """Error codes, authorized operations, and which resources are named, by path. Resources of
    other situations than the one with this prefix are left out.
    """
    found: dict[str, Any] = {}
    _walk(message, "", prefix, found)
    return {path: sorted(values) for path, values in found.items()}


def _walk(value: Any, path: str, prefix: str | None, found: dict[str, Any]) -> None:
    for each in dataclasses.fields(value):
        part = getattr(value, each.name)
        where = f"{path}.{each.name}" if path else each.name
        if each.name.endswith("error_code"):
            found.setdefault(where, set()).add(ErrorCode(part).name)
        elif each.name.endswith(OPERATIONS):
            found.setdefault(where, set()).add(str(part))
        elif dataclasses.is_dataclass(part):
            _walk(part, where, prefix, found)
        elif isinstance(part, tuple):
            for item in part:
                if dataclasses.is_dataclass(item):
                    name = _identity(item)
                    if _is_of_another(name, prefix):
                        continue
                    inside = f"{where}[{_without(name, prefix)}]"
                    found.setdefault(inside, {"is there"})
                    _walk(item, inside, prefix, found)


def _identity(item: Any) -> str:
    for field in IDENTITIES:
        name = getattr(item, field, None)
        if isinstance(name, str):
            return name
    return ""


def _is_of_another(name: str, prefix: str | None) -> bool:
    return prefix is not None and bool(
        _OF_A_SITUATION.match(name) and not name.startswith(f"{prefix}-")
    )


def _without(name: str, prefix: str | None) -> str:
    return name if prefix is None else name.removeprefix(f"{prefix}-")
