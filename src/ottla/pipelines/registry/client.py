"""Fetches schemas from a registry, through confluent-kafka's client of Confluent's REST interface.

The client tries a request again when the registry does not answer, with a limit (`settings`). What
fails after that is one sentence. No message has a setting of the client or the answer's headers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.registered import FORMATS, PROTOBUF, Fetched, Registered, Wanted
from ottla.pipelines.registry.settings import RegistrySettings

INSTALL_REGISTRY: Final = "pip install 'ottla[registry]'"
_SERIALIZED: Final = "serialized"
"""The form in which Confluent's registry gives Protobuf schemas compiled; others ignore it."""
MAX_VERSIONS: Final = 100
"""The newest versions of a subject that are known at the start; others are found when met."""
MAX_REFERENCES: Final = 200

_NOT_FOUND: Final = 404
_Found = TypeVar("_Found")


class Registry:
    """One registry. A schema never changes under its id, so each is asked for once."""

    def __init__(self, settings: RegistrySettings, client: Any = None) -> None:
        self._settings = settings
        self._client = client or _open(settings)
        self._known: dict[int, Registered] = {}

    def fetch(self, wanted: Wanted, met: Iterable[int] = ()) -> Fetched:
        """Return the schema to read by, and the other schemas that data may have.

        Those are the versions of the subject, and the ids in `met`, which were met in data.
        Raises PipelineError: no such subject or version, a registry that does not answer.
        """
        reader = self.reader(wanted)
        numbers = sorted(self._ask(lambda: self._versions(wanted.subject)) or ())
        others = [
            self._version(wanted.subject, number)
            for number in reversed(numbers[-MAX_VERSIONS:])
            if number != reader.version
        ]
        missing = set()
        for schema_id in sorted(set(met) - {one.id for one in (reader, *others)}):
            found = self._by_id(schema_id)
            if found is None:
                missing.add(schema_id)
            else:
                others.append(found)
        return Fetched(reader, tuple(others), frozenset(missing))

    def reader(self, wanted: Wanted) -> Registered:
        """Return the schema to read by. Raises PipelineError, as `fetch` does."""
        numbers = sorted(self._ask(lambda: self._versions(wanted.subject)) or ())
        if not numbers:
            raise PipelineError(
                f"The schema registry {self._settings.shown} has no subject {wanted.subject!r}: "
                "register its schema, or name another subject: schema='registry:SUBJECT'"
            )
        if wanted.version and wanted.version not in numbers:
            listed = ", ".join(map(str, numbers[-MAX_VERSIONS:]))
            raise PipelineError(
                f"The subject {wanted.subject} has no version {wanted.version}: it has {listed}"
            )
        found = self._version(wanted.subject, wanted.version or numbers[-1])
        if found.format not in FORMATS:
            raise PipelineError(
                f"{found.shown} is {found.format}; pipelines read {', '.join(FORMATS)}"
            )
        if wanted.message and found.format != PROTOBUF:
            raise PipelineError(
                f"{found.shown} is {found.format}, and only Protobuf has messages: leave out "
                f"#{wanted.message}"
            )
        return found

    def _versions(self, subject: str) -> list[int]:
        return list(self._client.get_versions(subject))

    def _version(self, subject: str, number: int) -> Registered:
        found = self._ask(lambda: self._client.get_version(subject, number, fmt=_SERIALIZED))
        if found is None:
            raise PipelineError(
                f"The schema registry {self._settings.shown} has no version {number} of {subject} "
                "any more"
            )
        return self._registered(found.schema_id, found.schema, subject, number, [0])

    def _by_id(self, schema_id: int) -> Registered | None:
        if schema_id not in self._known:
            found = self._ask(lambda: self._client.get_schema(schema_id, fmt=_SERIALIZED))
            if found is None:
                return None
            self._known[schema_id] = self._registered(schema_id, found, "", 0, [0])
        return self._known[schema_id]

    def _registered(
        self, schema_id: int, schema: Any, subject: str, version: int, count: list[int]
    ) -> Registered:
        """Return a schema with all that it refers to; `count` counts these."""
        count[0] += 1
        if count[0] > MAX_REFERENCES:
            raise PipelineError(
                f"A schema of {self._settings.shown} refers to more than {MAX_REFERENCES} others"
            )
        kind = schema.schema_type or FORMATS[0]
        references = []
        for one in schema.references or ():
            named = self._ask(
                functools.partial(
                    self._client.get_version, one.subject, one.version, fmt=_SERIALIZED
                )
            )
            if named is None:
                raise PipelineError(
                    f"Schema {schema_id} refers to version {one.version} of {one.subject}, which "
                    f"{self._settings.shown} does not have"
                )
            references.append(
                (
                    one.name,
                    self._registered(
                        named.schema_id, named.schema, one.subject, one.version, count
                    ),
                )
            )
        return Registered(schema_id, kind, schema.schema_str, subject, version, tuple(references))

    def _ask(self, request: Callable[[], _Found]) -> _Found | None:
        """Return the answer, None for "not found". Raises PipelineError for all other failures."""
        from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

        shown = self._settings.shown
        try:
            return request()
        except SchemaRegistryError as error:
            status = error.http_status_code
            if status == _NOT_FOUND:
                return None
            if status in (401, 403):
                raise PipelineError(
                    f"The schema registry {shown} refused the request (HTTP {status}): check "
                    "basic.auth.user.info or the token in registry="
                ) from None
            raise PipelineError(
                f"The schema registry {shown} failed (HTTP {status}): {error.error_message}"
            ) from None
        except OAuthTokenError:
            raise PipelineError(
                f"No token for the schema registry {shown}: check the bearer.auth settings"
            ) from None
        except _transport_error() as error:
            raise PipelineError(
                f"The schema registry {shown} does not answer ({type(error).__name__}): start it, "
                "or correct the URL"
            ) from None


def _open(settings: RegistrySettings) -> Any:
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise PipelineError(
            f"A schema registry needs its client ({error.name} is missing). "
            f"Type: {INSTALL_REGISTRY}"
        ) from error
    try:
        return SchemaRegistryClient(settings.for_client())
    except (ValueError, TypeError, OSError) as error:
        # The client's own words name settings, and never their values.
        raise PipelineError(f"registry= is refused by the client: {error}") from None


def _transport_error() -> type[Exception]:
    """Return what the client's HTTP library raises when there is no answer.

    confluent-kafka uses httpx2 from 2.16 on, and httpx before.
    """
    try:
        from httpx2 import TransportError
    except ImportError:
        from httpx import TransportError
    found: type[Exception] = TransportError
    return found
