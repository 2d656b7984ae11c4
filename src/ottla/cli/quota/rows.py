"""What is shown of quotas."""

from __future__ import annotations

from typing import Final

from ottla.cli.failures import UsageFailed
from ottla.cli.rows import column, row
from ottla.cli.sizes import parse_size
from ottla.client.admin.quotas import ClientQuota
from ottla.quotas.entity import OF_CLIENTS, Entity, Kind
from ottla.wording.sizes import size_text

NO_QUOTAS: Final = "No quotas. Add one with: ottla quota add"
OF_ADDRESSES: Final = (Kind.CONNECTION,)
BYTES: Final = (Kind.PRODUCE, Kind.FETCH)


def _shown(name: str | None) -> str:
    return "" if name is None else name or "<default>"


@row
class ShownQuota:
    """One limit, per second. A name is null where the quota does not ask for it, and "" for all
    that have none of their own.
    """

    user: str | None = column(cell=lambda each: _shown(each.user), is_optional=True)
    client: str | None = column(cell=lambda each: _shown(each.client), is_optional=True)
    ip: str | None = column(cell=lambda each: _shown(each.ip), is_optional=True)
    quota: str
    value: float = column(cell=lambda each: value_text(Kind(each.quota), each.value))


def value_text(kind: Kind, value: float) -> str:
    """As it is shown to people."""
    if kind in BYTES:
        return f"{size_text(int(value))}/s"
    number = f"{value:g}"
    return f"{number} %" if kind is Kind.REQUEST else f"{number}/s"


def shown(quota: ClientQuota) -> list[ShownQuota]:
    entity = quota.entity
    return [
        ShownQuota(entity.user, entity.client_id, entity.ip, kind.value, value)
        for kind, value in quota.values.items()
    ]


def kinds_of(entity: Entity) -> tuple[Kind, ...]:
    """The quotas that it may have."""
    return OF_CLIENTS if entity.ip is None else OF_ADDRESSES


def kind_of(word: str, entity: Entity) -> Kind:
    """Raises UsageFailed."""
    for kind in kinds_of(entity):
        if kind.value == word:
            return kind
    known = ", ".join(kind.value for kind in kinds_of(entity))
    raise UsageFailed(f"{word!r} is no quota of {entity}.", f"There are {known}.")


def value_of(kind: Kind, text: str) -> float:
    """Raises UsageFailed."""
    if kind in BYTES:
        return parse_size(kind.value, text.removesuffix("/s"), "=")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise UsageFailed(f"{kind.value}: {text!r} is not a number above 0.")
    return value
