"""All pages by their addresses, and what is not a page: files, logging in, colours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.errors import ForbiddenError, NotFoundError, VisitError, said
from ottla.console.failure_page import failure_page, status_of
from ottla.console.guard import Guard
from ottla.console.later import Later, import_soon
from ottla.console.login import Login
from ottla.console.pages.overview import overview
from ottla.console.templates import rendered
from ottla.console.visit import (
    LOGIN,
    THEME_COOKIE,
    THEMES,
    Page,
    checked_form,
    endpoint,
    keep,
    read_form,
)
from ottla.wording.errors import ReportedError

RECORD_STREAMS: Final = "ottla.console.record_streams"
STATIC: Final = Path(__file__).parent / "static"
PAGES: Final[dict[str, Page]] = {
    "/": overview,
    "/jump": Later("jump", "jump"),
    "/places": Later("jump", "suggested"),
    "/brokers/{broker:number}": Later("broker", "broker"),
    "/topics": Later("topics", "topics"),
    "/topics/new": Later("topic_changes", "creation"),
    "/topics/{topic}/messages": Later("messages", "messages"),
    "/topics/{topic}/send-again": Later("resend", "counted"),
    "/topics/{topic}/messages/{partition:number}/{offset:number}": Later("message", "message"),
    "/topics/{topic}/messages/{partition:number}/{offset:number}/file": Later("message", "whole"),
    "/topics/{topic}/messages/{partition:number}/{offset:number}/journey": Later(
        "journey", "journey"
    ),
    "/topics/{topic}/produce": Later("produce", "production"),
    "/topics/{topic}/partitions": Later("topic_partitions", "partitions"),
    "/topics/{topic}/partitions/{partition:number}": Later("partition", "partition"),
    "/topics/{topic}/settings": Later("topic_settings", "settings"),
    "/topics/{topic}/groups": Later("topic_groups", "topic_groups"),
    "/groups": Later("groups", "groups"),
    "/transactions": Later("transactions", "transactions"),
    "/schemas": Later("schemas", "schemas"),
    "/schemas/ids/{id:number}": Later("schemas", "schema_by_id"),
    "/schema": Later("schemas", "schema"),
    "/pipelines": Later("pipelines", "pipelines"),
    "/pipeline": Later("pipelines", "pipeline"),
    "/security": Later("security", "security"),
    "/group": Later("group", "group"),
    "/charts/group": Later("charts", "group_chart"),
    "/charts/topic": Later("charts", "topic_chart"),
}
CHANGES: Final[dict[str, Page]] = {
    "/topics/new": Later("topic_changes", "create"),
    "/topics/{topic}/send-again": Later("resend", "resent"),
    "/brokers/{broker:number}": Later("broker", "change_broker"),
    "/security/users": Later("security_changes", "add_user"),
    "/security/users/delete": Later("security_changes", "delete_user"),
    "/security/acls": Later("security_changes", "add_acl"),
    "/security/acls/delete": Later("security_changes", "delete_acl"),
    "/security/quotas": Later("security_changes", "set_quota"),
    "/group/plan": Later("group_reset", "planned"),
    "/group/apply": Later("group_reset", "applied"),
    "/group/delete": Later("group_reset", "deleted"),
    "/topics/{topic}/produce": Later("produce", "produce"),
    "/topics/{topic}/messages/{partition:number}/{offset:number}/send": Later(
        "message", "send_again"
    ),
    "/topics/{topic}/settings": Later("topic_changes", "change"),
    "/topics/{topic}/add-partitions": Later("topic_changes", "add"),
    "/topics/{topic}/delete": Later("topic_changes", "delete"),
    "/schema/check": Later("schema_changes", "checked"),
    "/schema/register": Later("schema_changes", "registered"),
    "/schema/delete-version": Later("schema_changes", "deleted_version"),
    "/schema/delete": Later("schema_changes", "deleted_subject"),
    "/schema/level": Later("schema_changes", "changed_level"),
}
"""By POST alone."""
STREAMS: Final = ("tail", "search", "export")
"""Of a topic; see `record_streams`."""
FAILED_LOGIN_S: Final = 1.0
"""What a wrong password costs; the thread waits, so few are tried at a time."""
MAX_LOGIN_BYTES: Final = 16 << 10
"""Anybody may send one."""
YEAR_S: Final = 365 * 24 * 3600


class _NumberConvertor(IntegerConvertor):
    """Python refuses to read numbers of thousands of digits; no offset has more than 19."""

    regex = "[0-9]{1,19}"


register_url_convertor("number", _NumberConvertor())


def application(console: Console, hosts: Iterable[str]) -> Guard:
    """The application. `hosts`: the names by which browsers may call it."""

    async def log_in(request: Request) -> Response:
        return await logged_in(console, request)

    async def log_out(request: Request) -> Response:
        return await logged_out(console, request)

    async def missing(request: Request, _error: Exception) -> Response:
        session, _ = console.session(request.cookies)
        error = NotFoundError("there is no such page.", "The names of all pages are on the left.")
        return failure_page(error, console, session, "/", request.cookies.get(THEME_COOKIE, ""))

    routes = [
        *(Route(path, endpoint(console, page), methods=["GET"]) for path, page in PAGES.items()),
        *(Route(path, endpoint(console, page), methods=["POST"]) for path, page in CHANGES.items()),
        *(Route(f"/topics/{{topic}}/{name}", streamed(console, name)) for name in STREAMS),
        Route("/theme", choose_theme, methods=["GET"]),
        Route(LOGIN, log_in, methods=["GET", "POST"]),
        Route("/logout", log_out, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: missing}), hosts)


def streamed(console: Console, name: str) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for a stream."""

    async def answer(request: Request) -> Response:
        # What reads records takes long to import: in a thread.
        streams = await asyncio.to_thread(import_module, RECORD_STREAMS)
        response: Response = await streams.stream(console, name)(request)
        return response

    return answer


def import_rest_soon() -> None:
    """What the first page does not need."""
    pages = (*PAGES.values(), *CHANGES.values())
    modules = {each.module for each in pages if isinstance(each, Later)}
    import_soon([RECORD_STREAMS, *sorted(modules)])


async def choose_theme(request: Request) -> Response:
    """Back to the page, in other colours."""
    response = RedirectResponse(own_path(request.query_params.get("then", "/")), 303)
    theme = request.query_params.get("to", "")
    if theme in THEMES:
        response.set_cookie(THEME_COOKIE, theme, max_age=YEAR_S, samesite="strict", httponly=True)
    return response


async def logged_in(console: Console, request: Request) -> Response:
    """The form, or the page that the visitor wanted once he has logged in."""
    if console.login is None:
        return RedirectResponse("/", 303)
    then, why, status = own_path(request.query_params.get("then", "/")), None, 200
    if request.method == "POST":
        login = console.login
        try:
            form = await read_form(request, MAX_LOGIN_BYTES)
            then = own_path(form.get("then", "/"))
            access, user = await console.logins.run(lambda: entered(login, form))
        except ReportedError as error:
            why, status = said(error), status_of(error)
        else:
            response = RedirectResponse(then, 303)
            keep(response, console, console.sessions.begin(access, user))
            return response
    theme = request.cookies.get(THEME_COOKIE, "")
    return rendered(
        "login.html",
        console,
        None,
        status=status,
        url=LOGIN,
        theme=theme if theme in THEMES else "",
        messages=[],
        then=then,
        why=why,
    )


def entered(login: Login, form: Mapping[str, str]) -> tuple[Access, str | None]:
    """In a thread. Raises what `Login.enter` raises, ForbiddenError only after a while."""
    try:
        return login.enter(form.get("user", ""), form.get("password", ""))
    except ForbiddenError:
        time.sleep(FAILED_LOGIN_S)
        raise


async def logged_out(console: Console, request: Request) -> Response:
    """Ends the session."""
    session, _ = console.session(request.cookies)
    if session is not None:
        try:
            await checked_form(request, session, read_only=False)
        except VisitError as error:
            return failure_page(error, console, session, "/", "")
        console.sessions.end(session)
    return RedirectResponse(LOGIN, 303)


def own_path(text: str) -> str:
    """An address of this console; `/` for any other."""
    try:
        is_own = not urlsplit(text).netloc
    except ValueError:
        return "/"
    is_own = is_own and text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_own and text.isprintable() else "/"
