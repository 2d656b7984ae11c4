"""The schemas of the registry: subjects, versions, and what a version has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple, TypeVar

from starlette.responses import RedirectResponse, Response

from ottla.console.errors import NotFoundError, VisitError
from ottla.console.login import SaslLogin
from ottla.console.pages.paging import paging_of
from ottla.console.schemas import Schemas
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.registry.changes import FORMATS, LEVELS, Reference, RegistryChanges
from ottla.registry.client import RegistryError
from ottla.registry.registered import PROTOBUF, Registered
from ottla.wording.errors import unknown

PER_PAGE: Final = 100
FRESH_S: Final = 5.0
MAX_COMPARED_LINES: Final = 3000
MAX_SHOWN_CHARS: Final = 400_000
AROUND: Final = 3
"""Lines that are the same, around a change."""
MAX_VERSIONS: Final = 500

T = TypeVar("T")


class RegistryAwayError(VisitError):
    """The registry cannot be asked, or refuses."""

    status = 502


class Line(NamedTuple):
    """`kind`: same, added, removed, or gap, which stands for so many lines as `text` says."""

    kind: str
    text: str


def schemas(visit: Visit) -> Response:
    """The page at `/schemas`."""
    registry, part = registry_of(visit), visit.text("q")
    known = visit.access.kept("subjects", FRESH_S, lambda: asked(registry.client.subjects))
    found = [name for name in known if part.lower() in name.lower()]
    paging = paging_of(visit, len(found), PER_PAGE)
    return visit.page(
        "schemas.html",
        registry=registry.shown,
        rows=found[paging.rows],
        count=len(found),
        all=len(known),
        part=part,
        page=paging.page,
        pages=paging.pages,
        may_change=may_change(visit),
        formats=FORMATS,
    )


def schema(visit: Visit) -> Response:
    """The page at `/schema?subject=NAME&version=N&with=M`: without `version` the newest, without
    `with` beside the one before.
    """
    registry, subject = registry_of(visit), visit.query.get("subject", "")
    numbers = asked(lambda: registry.client.versions(subject))
    if not numbers:
        names = asked(registry.client.subjects)
        raise unknown(NotFoundError, "subject", subject, names, "All are listed under Schemas.")
    number = visit.number("version", 1, 2**31 - 1) or numbers[-1]
    before = [each for each in numbers if each < number]
    other = visit.number("with", 0, 2**31 - 1)
    if other is None:
        other = before[-1] if before else 0
    shown = version_of(registry, subject, number)
    against = version_of(registry, subject, other) if other else None
    text = readable(shown)
    lines = None if against is None else compared(readable(against), text)
    return visit.page(
        "schema.html",
        subject=subject,
        numbers=numbers[::-1][:MAX_VERSIONS],
        shown=shown,
        text=text[:MAX_SHOWN_CHARS],
        is_cut=len(text) > MAX_SHOWN_CHARS,
        against=against,
        lines=lines,
        compatibility=asked(lambda: registry.client.compatibility(subject)),
        may_change=may_change(visit),
        formats=FORMATS,
        levels=LEVELS,
        references=written_references(
            asked(lambda: RegistryChanges(registry.client).references_of(subject, number))
        ),
    )


def schema_by_id(visit: Visit) -> Response:
    """The page at `/schemas/ids/ID`: what a record names."""
    registry, number = registry_of(visit), int(visit.path["id"])
    found = asked(lambda: registry.client.schema(number)) if number < 2**31 else None
    if found is None:
        raise NotFoundError(f"the registry has no schema {number}.")
    for subject, version in asked(lambda: registry.client.places_of(number))[:1]:
        return RedirectResponse(address("/schema", subject=subject, version=version), 303)
    return visit.page("schema_alone.html", shown=found, text=readable(found)[:MAX_SHOWN_CHARS])


def registry_of(visit: Visit) -> Schemas:
    """Raises NotFoundError if the console was started without one."""
    if visit.console.schemas is None:
        raise NotFoundError(
            "this console has no schema registry.", "Start it with --registry http://HOST:PORT."
        )
    return visit.console.schemas


def may_change(visit: Visit) -> bool:
    """Whether this visitor is offered changes. All would make them as the same user of the
    registry: not where each has his own rights (SASL).
    """
    return not visit.console.read_only and not isinstance(visit.console.login, SaslLogin)


def written_references(references: Sequence[Reference]) -> str:
    """For a form: `NAME = SUBJECT : VERSION` lines."""
    return "".join(f"{each.name} = {each.subject} : {each.version}\n" for each in references)


def version_of(registry: Schemas, subject: str, number: int) -> Registered:
    """Raises NotFoundError."""
    found = asked(lambda: registry.client.written(subject, number))
    if found is None:
        raise NotFoundError(f"subject {subject!r} has no version {number}.")
    return found


def asked(ask: Callable[[], T]) -> T:
    """What the registry answers. Raises RegistryAwayError."""
    try:
        return ask()
    except RegistryError as error:
        raise RegistryAwayError(
            f"the schema registry cannot be asked: {error}.", "Is it there, and --registry right?"
        ) from None


def readable(schema: Registered) -> str:
    """JSON indented; a Protobuf schema as it was written."""
    if schema.format == PROTOBUF:
        return schema.text
    try:
        return json.dumps(json.loads(schema.text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return schema.text


def compared(before: str, after: str) -> list[Line] | None:
    """What changed between two texts, with some lines around; None if they are too long. Pure."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MAX_COMPARED_LINES:
        return None
    return list(_lines(old, new))


def _lines(old: list[str], new: list[str]) -> Iterator[Line]:
    # Lines that are everywhere, such as a bracket, are no anchors: else texts of few different
    # lines take more than a minute.
    codes = SequenceMatcher(None, old, new, autojunk=True).get_opcodes()
    for at, (kind, begin, end, other, other_end) in enumerate(codes):
        if kind == "equal":
            same = old[begin:end]
            head = AROUND if at else 0
            tail = AROUND if at < len(codes) - 1 else 0
            hidden = len(same) - head - tail
            if hidden <= 1:
                yield from (Line("same", each) for each in same)
                continue
            yield from (Line("same", each) for each in same[:head])
            yield Line("gap", f"{hidden} lines are the same")
            yield from (Line("same", each) for each in same[len(same) - tail :])
        else:
            yield from (Line("removed", each) for each in old[begin:end])
            yield from (Line("added", each) for each in new[other:other_end])
