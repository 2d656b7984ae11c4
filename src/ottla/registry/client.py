"""Asks a registry for schemas, through confluent-kafka's client.

What fails is a `RegistryError`, whose words have no setting of the client and no header of the
answer; the caller says what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from ottla.registry.registered import AVRO, Registered

INSTALL_REGISTRY: Final = "pip install 'ottla[registry]'"
TIMEOUT_S: Final = 10
MAX_REFERENCES: Final = 200
"""The schemas that one schema may refer to, with those that they refer to."""

_SERIALIZED: Final = "serialized"
"""The form in which Confluent's registry gives Protobuf schemas compiled; others ignore it."""
_NOT_FOUND: Final = 404
_T = TypeVar("_T")


class RegistryError(Exception):
    """A registry cannot be asked, or does not answer as it should: one line without a stop.

    `status` is the answer's HTTP status, None where there is no answer. `away` is what the client
    calls the failure where no registry answers, else empty.
    """

    def __init__(self, words: str, status: int | None = None, away: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.away = away


class AddressError(RegistryError):
    """The address of a registry is none; the words are what it must be."""


class RegistryClient:
    """One registry. A schema never changes under its id."""

    def __init__(self, client: Any) -> None:
        """`client`: confluent-kafka's, as `open_registry` makes it."""
        self.client = client

    def subjects(self) -> list[str]:
        """Return the names of all subjects, sorted. Raises RegistryError."""
        return sorted(self.ask(self.client.get_subjects) or ())

    def places_of(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects that have a schema, each with the version; none where the registry
        does not say.
        """
        found = self.ask(lambda: self.client.get_schema_versions(schema_id)) or ()
        return sorted((one.subject, one.version) for one in found if one.subject and one.version)

    def compatibility(self, subject: str) -> str | None:
        """Return the level by which new versions are checked: the subject's own, else that of the
        registry; None where it does not say.
        """
        own: str | None = self.ask(lambda: self.client.get_compatibility(subject))
        return own or self.ask(self.client.get_compatibility)

    def written(self, subject: str, number: int) -> Registered | None:
        """Return a version as it was written, without what it refers to: a Protobuf schema is
        text. None where there is none.
        """
        found = self.ask(lambda: self.client.get_version(subject, number))
        if found is None:
            return None
        kind = found.schema.schema_type or AVRO
        return Registered(found.schema_id, kind, found.schema.schema_str, subject, number)

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, the oldest first; none where there is no subject."""
        return sorted(self.ask(lambda: self.client.get_versions(subject)) or ())

    def version(self, subject: str, number: int) -> Registered | None:
        """Return a version of a subject, None where there is none. Raises RegistryError."""
        found = self._version(subject, number)
        return found and self._with_references(found.schema_id, found.schema, subject, number, [0])

    def latest(self, subject: str) -> Registered | None:
        """Return the newest version of a subject, None where there is none."""
        found = self.ask(lambda: self.client.get_latest_version(subject, fmt=_SERIALIZED))
        return found and self._with_references(
            found.schema_id, found.schema, subject, found.version or 0, [0]
        )

    def for_serializer(self, schema: Registered) -> Any:
        """Return a schema as confluent-kafka's serializers take it."""
        return self.ask(lambda: self.client.get_schema(schema.id, fmt=_SERIALIZED))

    def schema(self, schema_id: int) -> Registered | None:
        """Return the schema of an id, None where there is none. Raises RegistryError."""
        found = self.ask(lambda: self.client.get_schema(schema_id, fmt=_SERIALIZED))
        return found and self._with_references(schema_id, found, "", 0, [0])

    def _version(self, subject: str, number: int) -> Any:
        return self.ask(lambda: self.client.get_version(subject, number, fmt=_SERIALIZED))

    def _with_references(
        self, schema_id: int, schema: Any, subject: str, number: int, count: list[int]
    ) -> Registered:
        """Return a schema with all that it refers to; `count` counts these."""
        count[0] += 1
        if count[0] > MAX_REFERENCES:
            raise RegistryError(f"a schema refers to more than {MAX_REFERENCES} others")
        references = []
        for one in schema.references or ():
            named = self._version(one.subject, one.version)
            if named is None:
                raise RegistryError(
                    f"schema {schema_id} refers to version {one.version} of {one.subject}, which "
                    "is not there"
                )
            inner = self._with_references(
                named.schema_id, named.schema, one.subject, one.version, count
            )
            references.append((one.name, inner))
        kind = schema.schema_type or AVRO
        return Registered(schema_id, kind, schema.schema_str, subject, number, tuple(references))

    def ask(self, request: Callable[[], _T]) -> _T | None:
        """Return the answer, None for "not found"."""
        from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

        try:
            return request()
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            words = str(error.error_message).rstrip(".")
            raise RegistryError(words, error.http_status_code) from None
        except OAuthTokenError:
            raise RegistryError("nobody gave a token: check the bearer.auth settings") from None
        except Exception as error:
            if not is_away(error):
                raise
            raise RegistryError(first_line(error), away=type(error).__name__) from None


def open_registry(settings: Mapping[str, Any]) -> RegistryClient:
    """Return the client of these settings, by confluent-kafka's names.

    Raises RegistryError: the client is not installed, or refuses a setting.
    """
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise RegistryError(
            f"A schema registry needs its client ({error.name} is missing). Type: "
            f"{INSTALL_REGISTRY}"
        ) from error
    try:
        return RegistryClient(SchemaRegistryClient(dict(settings)))
    except (ValueError, TypeError, OSError) as error:
        # The client's own words name settings, and never their values.
        raise RegistryError(f"The client refuses the settings of the registry: {error}") from None


def registry_at(url: str, timeout_s: float = TIMEOUT_S) -> RegistryClient:
    """Return the client of a registry; `http://user:password@host` authenticates.

    Raises RegistryError, AddressError for what is no address.
    """
    wrong = AddressError("http://HOST:PORT or https://HOST:PORT")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    address = parts.netloc.rpartition("@")[2]
    settings: dict[str, Any] = {
        "url": urlunsplit((parts.scheme, address, parts.path, "", "")),
        "timeout": timeout_s,
        "max.retries": 1,
    }
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        settings["basic.auth.user.info"] = f"{user}:{password}"
    return open_registry(settings)


def is_away(error: Exception) -> bool:
    """Tell whether the registry did not answer.

    The client's HTTP library, which only it imports, has errors of its own: confluent-kafka uses
    httpx2 from 2.16 on, and httpx before.
    """
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError) or library in ("httpx", "httpx2")


def first_line(error: BaseException) -> str:
    """Return what went wrong in one line; the schemas that some messages quote are left out."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
