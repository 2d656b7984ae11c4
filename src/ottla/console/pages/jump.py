"""The field that jumps to a topic or a group, and what it suggests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.responses import JSONResponse, RedirectResponse, Response

from ottla.client.admin.groups import listed_groups
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.console.templates import address
from ottla.console.visit import Visit

MAX_SUGGESTED: Final = 20
FRESH_S: Final = 5.0


def jump(visit: Visit) -> Response:
    """To the topic or the group of this name, else to the topics with a part of it."""
    wanted = visit.text("q")
    topics, groups = asked_names(visit.client)
    if wanted in topics:
        return RedirectResponse(f"/topics/{wanted}/messages", 303)
    if wanted in groups:
        return RedirectResponse(address("/group", name=wanted), 303)
    found = containing(wanted, topics)
    if len(found) == 1:
        return RedirectResponse(f"/topics/{found[0]}/messages", 303)
    if not found and (of_groups := containing(wanted, groups)):
        if len(of_groups) == 1:
            return RedirectResponse(address("/group", name=of_groups[0]), 303)
        return RedirectResponse(address("/groups", q=wanted), 303)
    return RedirectResponse(address("/topics", q=wanted), 303)


def suggested(visit: Visit) -> Response:
    """The names of topics and groups with this part, as JSON."""
    topics, groups = known_names(visit)
    found = containing(visit.text("q"), topics) + containing(visit.text("q"), groups)
    return JSONResponse(found[:MAX_SUGGESTED])


def known_names(visit: Visit) -> tuple[list[str], list[str]]:
    """As they were a moment ago."""
    return visit.access.kept("names", FRESH_S, lambda: asked_names(visit.client))


def asked_names(client: Client) -> tuple[list[str], list[str]]:
    """Of all topics and of all groups."""
    return sorted(client.metadata().topics), group_names(client)


def group_names(client: Client) -> list[str]:
    try:
        return [each.group for each in listed_groups(client)]
    except RefusedError:
        return []


def containing(part: str, names: Iterable[str]) -> list[str]:
    """Those with this part, in any case; first those that begin with it."""
    lower = part.lower()
    found = [name for name in names if lower in name.lower()]
    return sorted(found, key=lambda name: (not name.lower().startswith(lower), name))
