"""Changing the registry: a new version, which is checked first, deletions, the level of a subject.

A form has the newest version (or the level) that its page has shown (`seen`): if somebody has
changed it since, nothing is done. All visitors change it as the registry's user of this console, so
where each has his own rights (SASL) nobody does.
"""

from __future__ import annotations

import json
from typing import Final

from starlette.responses import Response

from ottla.console.errors import BadFormError, ConflictError, ForbiddenError
from ottla.console.pages.schemas import (
    asked,
    compared,
    may_change,
    readable,
    registry_of,
    written_references,
)
from ottla.console.schemas import Schemas
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.registry.changes import FORMATS, LEVELS, NewSchema, Reference, RegistryChanges
from ottla.registry.registered import PROTOBUF, Registered
from ottla.wording.plural import plural

MAX_TEXT: Final = 1 << 20
MAX_SUBJECT: Final = 1000
MAX_REFERENCES: Final = 200


def checked(visit: Visit) -> Response:
    """What the form of a new version leads to: what it changes and whether that is allowed. Nothing
    is changed.
    """
    registry, changes = changes_of(visit)
    subject, new = subject_of(visit), new_schema(visit)
    newest = newest_of(registry, subject)
    text = readable(Registered(0, new.format, new.text))
    return visit.page(
        "schema_new.html",
        subject=subject,
        new=new,
        written=written_references(new.references),
        newest=newest,
        lines=None if newest is None else compared(readable(newest), text),
        is_allowed=asked(lambda: changes.is_allowed(subject, new)),
        level=asked(lambda: registry.client.compatibility(subject)),
        seen=newest.version if newest is not None else 0,
    )


def registered(visit: Visit) -> Response:
    """Registers what was checked, if it is still allowed and the newest version still the same."""
    registry, changes = changes_of(visit)
    subject, new = subject_of(visit), new_schema(visit)
    newest = newest_of(registry, subject)
    present = newest.version if newest is not None else 0
    if visit.number("seen", 0, 2**31 - 1) != present:
        raise ConflictError(
            f"{subject} has version {present} by now: somebody has changed it meanwhile.",
            "Nothing was registered. Check it again.",
        )
    if not asked(lambda: changes.is_allowed(subject, new)):
        raise BadFormError(
            f"the level of {subject} does not allow this version.", "Nothing was registered."
        )
    number = asked(lambda: changes.register(subject, new))
    return visit.go(address("/schema", subject=subject), f"Registered it as schema {number}.")


def deleted_version(visit: Visit) -> Response:
    """One version, once its number was typed."""
    _, changes = changes_of(visit)
    subject, version = subject_of(visit), visit.number("version", 1, 2**31 - 1)
    if version is None or visit.text("typed") != str(version):
        raise BadFormError(
            f"to delete version {version} of {subject}, type its number, not "
            f"{visit.text('typed')!r}.",
            "Nothing was deleted.",
        )
    if not asked(lambda: changes.delete_version(subject, version)):
        raise ConflictError(f"{subject} has no version {version} any more.")
    return visit.go("/schemas", f"Deleted version {version} of {subject}.")


def deleted_subject(visit: Visit) -> Response:
    """A subject with all versions, once its name was typed."""
    _, changes = changes_of(visit)
    subject = subject_of(visit)
    if visit.text("typed") != subject:
        raise BadFormError(
            f"to delete {subject}, type its name, not {visit.text('typed')!r}.",
            "Nothing was deleted.",
        )
    gone = asked(lambda: changes.delete_subject(subject))
    if not gone:
        raise ConflictError(f"there is no subject {subject!r} any more.")
    return visit.go("/schemas", f"Deleted {subject} with {plural(len(gone), 'version')}.")


def changed_level(visit: Visit) -> Response:
    """What new versions of a subject must be."""
    registry, changes = changes_of(visit)
    subject, level = subject_of(visit), visit.text("level")
    if level not in LEVELS:
        raise BadFormError(f"the level must be one of {', '.join(LEVELS)}, not {level!r}.")
    present = asked(lambda: registry.client.compatibility(subject)) or ""
    if visit.text("seen") != present:
        raise ConflictError(
            f"the level of {subject} is {present or 'not known'} by now: somebody has changed it"
            " since this page was loaded.",
            "Nothing was changed. Load the page again.",
        )
    asked(lambda: changes.set_level(subject, level))
    return visit.go(address("/schema", subject=subject), f"The level of {subject} is {level} now.")


def changes_of(visit: Visit) -> tuple[Schemas, RegistryChanges]:
    """Raises ForbiddenError and NotFoundError."""
    if not may_change(visit):
        raise ForbiddenError(
            "schemas are not changed here: the registry does not know who you are, and its user"
            " would change them for everybody who can log in.",
            "Change them where the registry is administered.",
        )
    registry = registry_of(visit)
    return registry, RegistryChanges(registry.client)


def subject_of(visit: Visit) -> str:
    """Raises BadFormError."""
    subject = visit.form.get("subject", "")
    if not subject.strip() or len(subject) > MAX_SUBJECT:
        raise BadFormError(f"the subject needs a name of at most {MAX_SUBJECT} characters.")
    return subject


def newest_of(registry: Schemas, subject: str) -> Registered | None:
    numbers = asked(lambda: registry.client.versions(subject))
    return asked(lambda: registry.client.written(subject, numbers[-1])) if numbers else None


def new_schema(visit: Visit) -> NewSchema:
    """Of the form. Raises BadFormError."""
    form, text = visit.text("format"), visit.form.get("schema", "").replace("\r\n", "\n")
    if form not in FORMATS:
        raise BadFormError(f"the kind must be one of {', '.join(FORMATS)}, not {form!r}.")
    if not text.strip() or len(text) > MAX_TEXT:
        raise BadFormError(f"the schema must have 1 to {MAX_TEXT:,} characters.")
    if form != PROTOBUF:
        try:
            json.loads(text)
        except RecursionError:
            raise BadFormError("the schema is nested too deep.") from None
        except ValueError as error:
            raise BadFormError(f"the schema is not JSON: {error}.") from None
    return NewSchema(form, text, read_references(visit.form.get("references", "")))


def read_references(text: str) -> tuple[Reference, ...]:
    """`NAME = SUBJECT : VERSION` lines. Raises BadFormError."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, place = line.partition("=")
        subject, _, version = place.rpartition(":")
        number = version.strip()
        if not equals or not name.strip() or not subject.strip() or not number.isdecimal():
            raise BadFormError(
                f"a reference must be NAME = SUBJECT : VERSION, not {line!r}.",
                "For example: com.example.Airport = airports-value : 3",
            )
        found.append(Reference(name.strip(), subject.strip(), int(number[:9])))
    if len(found) > MAX_REFERENCES:
        raise BadFormError(f"a schema may refer to {MAX_REFERENCES} others, not {len(found)}.")
    return tuple(found)
