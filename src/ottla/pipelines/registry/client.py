"""Which schemas of a registry a pipeline reads by: its rules over `ottla.registry`.

The client tries a request again when the registry does not answer, with a limit (`settings`). What
fails after that is one sentence. No message has a setting of the client or the answer's headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.registered import Fetched, Wanted
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.registry.client import RegistryClient, RegistryError, open_registry
from ottla.registry.registered import FORMATS, PROTOBUF, Registered

MAX_VERSIONS: Final = 100
"""The newest versions of a subject that are known at the start; others are found when met."""

_Found = TypeVar("_Found")


class Registry:
    """One registry. A schema never changes under its id, so each is asked for once."""

    def __init__(self, settings: RegistrySettings, client: RegistryClient | None = None) -> None:
        self._settings = settings
        self._client = client or self._ask(lambda: open_registry(settings.for_client()))
        self._known: dict[int, Registered] = {}

    def fetch(self, wanted: Wanted, met: Iterable[int] = ()) -> Fetched:
        """Return the schema to read by, and the other schemas that data may have.

        Those are the versions of the subject, and the ids in `met`, which were met in data.
        Raises PipelineError: no such subject or version, a registry that does not answer.
        """
        reader = self.reader(wanted)
        numbers = self._ask(lambda: self._client.versions(wanted.subject))
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
        numbers = self._ask(lambda: self._client.versions(wanted.subject))
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

    def _version(self, subject: str, number: int) -> Registered:
        found = self._ask(lambda: self._client.version(subject, number))
        if found is None:
            raise PipelineError(
                f"The schema registry {self._settings.shown} has no version {number} of {subject} "
                "any more"
            )
        return found

    def _by_id(self, schema_id: int) -> Registered | None:
        if schema_id not in self._known:
            found = self._ask(lambda: self._client.schema(schema_id))
            if found is None:
                return None
            self._known[schema_id] = found
        return self._known[schema_id]

    def _ask(self, request: Callable[[], _Found]) -> _Found:
        """Return the answer. Raises PipelineError."""
        try:
            return request()
        except RegistryError as error:
            raise PipelineError(self._sentence(error)) from None

    def _sentence(self, error: RegistryError) -> str:
        registry = f"The schema registry {self._settings.shown}"
        if error.status in (401, 403):
            return (
                f"{registry} refused the request (HTTP {error.status}): check "
                "basic.auth.user.info or the token in registry="
            )
        if error.status is not None:
            return f"{registry} failed (HTTP {error.status}): {error}"
        if error.away:
            return f"{registry} does not answer ({error.away}): start it, or correct the URL"
        return f"{registry}: {error}"
