"""Quotas of users, client ids and addresses: DescribeClientQuotas and AlterClientQuotas (KIP-546).

Any broker answers; those that did not change the quotas themselves know it within a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.client.admin.controller import code_of_each
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.quotas.entity import CLIENT_ID, DEFAULT, IP, OF_CLIENTS, USER, Entity, Kind
from ottla.quotas.limits import Limits

DESCRIBE_QUOTAS: Final = 48
ALTER_QUOTAS: Final = 49
SINCE: Final = "2.6"


class ClientQuota(NamedTuple):
    """The quotas of one entity, by kind, per second."""

    entity: Entity
    values: Mapping[Kind, float]


def quotas(client: Client) -> list[ClientQuota]:
    """All of them: users and client ids, then addresses. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        return messages.DescribeClientQuotasRequest(components=(), strict=False)

    response = client.ask_any(Question(DESCRIBE_QUOTAS, 1, build, since=SINCE))
    if response.error_code is not ErrorCode.none:
        raise RefusedError(
            "list the quotas",
            response.error_code,
            response.error_message,
            Needs("DescribeConfigs"),
        )
    known = {kind.value: kind for kind in Kind}
    found = []
    for entry in response.entries or ():
        names = {each.entity_type: each.entity_name or "" for each in entry.entity}
        values = {known[each.key]: each.value for each in entry.values if each.key in known}
        found.append(
            ClientQuota(Entity(names.get(USER), names.get(CLIENT_ID), names.get(IP)), values)
        )
    return sorted(found, key=_order)


def _order(quota: ClientQuota) -> tuple[object, ...]:
    return tuple((name is None, name or "") for name in quota.entity)


class AppliedQuota(NamedTuple):
    """A limit of a client, per second, and the entity whose quota it is."""

    kind: Kind
    value: float
    of: Entity


def applied_to_client(client: Client, user: str, client_id: str) -> list[AppliedQuota]:
    """The quotas of a client. Raises RefusedError."""
    limits = Limits()
    for quota in quotas(client):
        if quota.entity.ip is None:
            limits.set(quota.entity, quota.values)
    found = [(kind, limits.deciding(kind, user, client_id)) for kind in OF_CLIENTS]
    return [
        AppliedQuota(kind, decided[1], decided[0]) for kind, decided in found if decided is not None
    ]


def applied_to_address(client: Client, ip: str) -> list[AppliedQuota]:
    """The quotas of an address, which has the form of `quotas.connections.address`. Raises
    RefusedError.
    """
    by_ip = {each.entity.ip: each for each in quotas(client) if each.entity.ip is not None}
    found = by_ip.get(ip, by_ip.get(DEFAULT))
    if found is None:
        return []
    return [AppliedQuota(kind, value, found.entity) for kind, value in found.values.items()]


def alter_quotas(client: Client, entity: Entity, values: Mapping[Kind, float | None]) -> None:
    """Sets quotas; None removes one. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        return messages.AlterClientQuotasRequest(
            entries=(
                messages.EntryData(
                    entity=tuple(
                        messages.EntityData(entity_type=type, entity_name=name or None)
                        for type, name in entity.names().items()
                    ),
                    ops=tuple(
                        messages.OpData(key=kind.value, value=value or 0.0, remove=value is None)
                        for kind, value in values.items()
                    ),
                ),
            ),
            validate_only=False,
        )

    doing = f"change the quotas of {entity}"
    client.metadata([])  # a broker that cannot be reached is no reason to wait for a controller
    question = Question(ALTER_QUOTAS, 1, build, since=SINCE)
    response = client.ask_controller(question, doing, code_of_each("entries"))
    for each in response.entries:
        if each.error_code is not ErrorCode.none:
            raise RefusedError(doing, each.error_code, each.error_message, Needs("AlterConfigs"))
