"""The quotas of users, client ids and addresses, as Kafka stores them (KIP-546, KIP-612).

    /config/users/alice                 {"version": 1, "config": {"producer_byte_rate": "1048576"}}
    /config/users/alice/clients/etl     the same, for that client id of the user
    /config/clients/etl                 for that client id of any user
    /config/ips/10.0.0.7                {"version": 1, "config": {"connection_creation_rate": "5"}}

<default> in the place of a name is for all that have none of their own. As Kafka's
ClientQuotaControlManager; what it keeps in records, its ZooKeeper mode has here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple

from ottla.controller import layout
from ottla.controller.config_changes import config_write, next_version
from ottla.controller.image import (
    NO_CONFIG,
    ClusterImage,
    ConfigImage,
    QuotaConfigChanged,
    UserConfigChanged,
)
from ottla.controller.plan import DONE, Outcome, PlanBuilder, Step, Steps, refused
from ottla.coordination.tree import Delete
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.quotas.connections import address
from ottla.quotas.entity import CLIENT_ID, DEFAULT, IP, OF_CLIENTS, USER, Entity, Kind
from ottla.quotas.limits import MAX_NAME_CHARACTERS

CHANGE_US: Final = 50
COUNT_US: Final = 2
_TYPES: Final = (USER, CLIENT_ID, IP)
_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_WHOLE: Final = {
    Kind.PRODUCE: (_LONG_MAX, "LONG"),
    Kind.FETCH: (_LONG_MAX, "LONG"),
    Kind.CONNECTION: (_INT_MAX, "INT"),
}
"""The kinds whose quotas are whole numbers, with the largest; the others may have fractions."""
_EXACT: Final = 0
_OF_DEFAULT: Final = 1
_ANY: Final = 2
"""How a filter compares a name, as in the protocol."""


class QuotaChange(NamedTuple):
    """Changes of the quotas of one entity."""

    entity: tuple[tuple[str, str | None], ...]
    """Types and names; None for the default."""
    values: tuple[tuple[str, float | None], ...]
    """By the quota's key; None removes it."""


class QuotaOutcome(NamedTuple):
    """What became of the changes to one entity."""

    entity: tuple[tuple[str, str | None], ...]
    outcome: Outcome


class NameFilter(NamedTuple):
    """Which names of one type are wanted."""

    type: str
    match: int
    """0: the name is `name`; 1: it is the default's; 2: there is one."""
    name: str | None


def read_quotas(values: Mapping[str, str]) -> dict[Kind, float]:
    """The quotas among the settings of a node; without those that limit nothing or say nothing."""
    found: dict[Kind, float] = {}
    for kind in Kind:
        text = values.get(kind.value)
        try:
            value = None if text is None else float(text)
        except ValueError:
            continue
        if value is not None and isfinite(value) and (value > 0 or kind is Kind.CONNECTION):
            found[kind] = value
    return found


def path_of(entity: Entity) -> str:
    """The path of an entity's node, below /config."""
    if entity.ip is not None:
        return f"{layout.IPS}/{layout.node_name(entity.ip)}"
    parts = []
    if entity.user is not None:
        parts += [layout.USERS, layout.node_name(entity.user)]
    if entity.client_id is not None:
        parts += [layout.CLIENTS, layout.node_name(entity.client_id)]
    return "/".join(parts)


def entity_of(entity_path: str) -> Entity | None:
    """The inverse of `path_of`; None for the parent of entities' nodes, and for what is none."""
    match entity_path.split("/"):
        case [layout.IPS, name]:
            return Entity(ip=layout.name_of(name))
        case [layout.CLIENTS, name]:
            return Entity(client_id=layout.name_of(name))
        case [layout.USERS, name]:
            return Entity(layout.name_of(name))
        case [layout.USERS, user, layout.CLIENTS, name]:
            return Entity(layout.name_of(user), layout.name_of(name))
    return None


def all_quotas(image: ClusterImage) -> Iterator[tuple[Entity, dict[Kind, float]] | None]:
    """All entities, with their quotas; None for a node without any."""
    for user, config in image.users.items():
        quotas = read_quotas(config.values)
        yield (Entity(user), quotas) if quotas else None
    for entity_path, config in image.quotas.items():
        entity, quotas = entity_of(entity_path), read_quotas(config.values)
        yield (entity, quotas) if entity is not None and quotas else None


def matches(entity: Entity, wanted: Sequence[NameFilter], *, strict: bool) -> bool:
    """Whether a checked filter selects an entity; `strict`: it has no names of other types."""
    names = entity.names()
    if strict and len(names) != len(wanted):
        return False
    for each in wanted:
        name = names.get(each.type)
        if name is None:
            return False
        if each.match != _ANY and name != (DEFAULT if each.match == _OF_DEFAULT else each.name):
            return False
    return True


def check_filter(wanted: Sequence[NameFilter]) -> None:
    """Raises INVALID_REQUEST, and UNSUPPORTED_VERSION for an unknown type (ClientQuotasImage)."""
    seen: set[str] = set()
    for each in wanted:
        if not each.type:
            raise _invalid("Invalid empty entity type.")
        if each.type in seen:
            raise _invalid(f"Entity type {each.type} cannot appear more than once in the filter.")
        if each.type not in _TYPES:
            raise ApiError(
                ErrorCode.unsupported_version, f"Unsupported entity type {each.type[:100]}"
            )
        seen.add(each.type)
        if each.match not in (_EXACT, _OF_DEFAULT, _ANY):
            raise _invalid(f"Unknown match type {each.match}")
        if each.match == _EXACT and each.name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if each.match != _EXACT and each.name is not None:
            kind = "DEFAULT" if each.match == _OF_DEFAULT else "SPECIFIED"
            raise _invalid(
                f"Request specified MATCH_TYPE_{kind}, but also specified a match string."
            )
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def alter_quotas(
    changes: Sequence[QuotaChange], image: ClusterImage, *, validate_only: bool = False
) -> Steps[tuple[QuotaOutcome, ...]]:
    """Make the valid changes; an entity may be named once."""
    plan, step = _Change(image), Step()
    results: list[QuotaOutcome] = []
    counts: Counter[frozenset[tuple[str, str | None]]] = Counter()
    for change in changes:
        if step.is_full(COUNT_US):
            yield
        counts[frozenset(change.entity)] += 1
    for change in changes:
        if step.is_full(CHANGE_US):
            yield
        names = frozenset(change.entity)
        if counts[names] == 0:
            continue  # it has had its answer
        try:
            if counts[names] > 1:
                raise _invalid("Ignoring duplicate entity")
            entity = _checked_entity(change.entity)
            plan.alter(entity, _checked_values(change.values, entity))
        except ApiError as error:
            outcome = refused(error)
        else:
            outcome = DONE
        counts[names] = 0
        results.append(QuotaOutcome(change.entity, outcome))
    return plan.builder.plan(tuple(results), validate_only=validate_only)


class _Change:
    """The nodes as they are after the changes so far."""

    def __init__(self, image: ClusterImage) -> None:
        self.builder = PlanBuilder()
        self._image = image
        self._changed: dict[str, ConfigImage] = {}

    def alter(self, entity: Entity, changes: Mapping[Kind, float | None]) -> None:
        entity_path = path_of(entity)
        present = self._node(entity_path)
        values = dict(present.values)
        for kind, value in changes.items():
            if value is None:
                values.pop(kind.value, None)
            else:
                values[kind.value] = _text(kind, value)
        if values == present.values:
            return
        if not values and not self._is_of_user(entity_path):
            assert present.version is not None
            self.builder.writes.append(Delete(f"{layout.CONFIG}/{entity_path}", present.version))
            self._is_now(entity_path, NO_CONFIG)
            return
        if entity.user is not None and entity.client_id is not None:
            user = path_of(Entity(entity.user))
            for parent in (user, f"{user}/{layout.CLIENTS}"):
                if self._node(parent).version is None:
                    self._put(parent, {}, None)
        self._put(entity_path, values, present.version)

    @staticmethod
    def _is_of_user(entity_path: str) -> bool:
        """It may have nodes below, and the user's credentials."""
        return entity_path.startswith(f"{layout.USERS}/") and entity_path.count("/") == 1

    def _node(self, entity_path: str) -> ConfigImage:
        if entity_path in self._changed:
            return self._changed[entity_path]
        if self._is_of_user(entity_path):
            entity = entity_of(entity_path)
            assert entity is not None
            assert entity.user is not None
            return self._image.users.get(entity.user, NO_CONFIG)
        return self._image.quotas.get(entity_path, NO_CONFIG)

    def _put(self, entity_path: str, values: dict[str, str], version: int | None) -> None:
        path = f"{layout.CONFIG}/{entity_path}"
        self.builder.writes.append(config_write(path, values, version))
        self._is_now(entity_path, ConfigImage(values, next_version(version)))

    def _is_now(self, entity_path: str, config: ConfigImage) -> None:
        self._changed[entity_path] = config
        if self._is_of_user(entity_path):
            entity = entity_of(entity_path)
            assert entity is not None
            assert entity.user is not None
            self.builder.deltas.append(UserConfigChanged(entity.user, config))
        else:
            self.builder.deltas.append(QuotaConfigChanged(entity_path, config))


def _checked_entity(given: Sequence[tuple[str, str | None]]) -> Entity:
    """Raises INVALID_REQUEST."""
    if not given:
        raise _invalid("Invalid empty client quota entity")
    names: dict[str, str] = {}
    for type, name in given:
        if type in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {type}")
        if type not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {type[:100]}")
        if name == "":
            raise _invalid(f"Empty {type} not supported")
        if name is not None and len(name) > MAX_NAME_CHARACTERS:
            raise _invalid(f"A {type} must not have more than {MAX_NAME_CHARACTERS} characters")
        names[type] = DEFAULT if name is None else name
    if IP not in names:
        return Entity(names.get(USER), names.get(CLIENT_ID))
    if len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be combined with User or "
            "ClientId"
        )
    try:
        return Entity(ip=address(names[IP]) if names[IP] else DEFAULT)
    except ValueError:
        raise _invalid(f"{names[IP]} is not a valid IP address.") from None


def _checked_values(
    given: Sequence[tuple[str, float | None]], entity: Entity
) -> dict[Kind, float | None]:
    """Raises INVALID_REQUEST."""
    allowed = (Kind.CONNECTION,) if entity.ip is not None else OF_CLIENTS
    by_key = {kind.value: kind for kind in allowed}
    values: dict[Kind, float | None] = {}
    for key, value in given:
        kind = by_key.get(key)
        if kind is None:
            raise _invalid(f"Invalid configuration key {key[:100]}")
        if kind in values:
            raise _invalid(f"Duplicate quota key {key}")
        if value is not None:
            _check_value(kind, value)
        values[kind] = value
    return values


def _check_value(kind: Kind, value: float) -> None:
    key = kind.value
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    most, type = _WHOLE.get(kind, (None, ""))
    if not isfinite(value) or (most is not None and value > most):
        raise _invalid(f"Proposed value for {key} is too large for a {type or 'DOUBLE'}.")
    if most is not None and value % 1 > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")


def _text(kind: Kind, value: float) -> str:
    """As Kafka's ZkAdminManager writes it."""
    if kind in _WHOLE:
        return str(min(int(value), _WHOLE[kind][0]))
    return repr(float(value))


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
