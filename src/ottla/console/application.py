"""All pages by their addresses, and what is not a page: files, logging in, colours."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
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
from ottla.console.errors import ForbiddenError, NotFoundError, VisitError
from ottla.console.failure_page import failure_page, status_of
from ottla.console.guard import Guard
from ottla.console.login import Login
from ottla.console.pages.broker import broker, change_broker
from ottla.console.pages.charts import group_chart, topic_chart
from ottla.console.pages.group import group
from ottla.console.pages.group_reset import applied, deleted, planned
from ottla.console.pages.groups import groups
from ottla.console.pages.journey import journey
from ottla.console.pages.jump import jump, suggested
from ottla.console.pages.message import message, send_again, whole
from ottla.console.pages.messages import messages
from ottla.console.pages.overview import overview
from ottla.console.pages.partition import partition
from ottla.console.pages.pipelines import pipeline, pipelines
from ottla.console.pages.produce import produce, production
from ottla.console.pages.resend import counted, resent
from ottla.console.pages.schema_changes import (
    changed_level,
    checked,
    deleted_subject,
    deleted_version,
    registered,
)
from ottla.console.pages.schemas import schema, schema_by_id, schemas
from ottla.console.pages.security import security
from ottla.console.pages.security_changes import (
    add_acl,
    add_user,
    delete_acl,
    delete_user,
    set_quota,
)
from ottla.console.pages.topic_changes import (
    add,
    change,
    create,
    creation,
    delete,
)
from ottla.console.pages.topic_groups import topic_groups
from ottla.console.pages.topic_partitions import partitions
from ottla.console.pages.topic_settings import settings
from ottla.console.pages.topics import topics
from ottla.console.pages.transactions import transactions
from ottla.console.record_streams import (
    EVENTS,
    LINES,
    Open,
    Stream,
    exported,
    open_export,
    open_search,
    open_tail,
    said,
    searched,
    stream,
    tailed,
)
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

STATIC: Final = Path(__file__).parent / "static"
PAGES: Final[dict[str, Page]] = {
    "/": overview,
    "/jump": jump,
    "/places": suggested,
    "/brokers/{broker:number}": broker,
    "/topics": topics,
    "/topics/new": creation,
    "/topics/{topic}/messages": messages,
    "/topics/{topic}/send-again": counted,
    "/topics/{topic}/messages/{partition:number}/{offset:number}": message,
    "/topics/{topic}/messages/{partition:number}/{offset:number}/file": whole,
    "/topics/{topic}/messages/{partition:number}/{offset:number}/journey": journey,
    "/topics/{topic}/produce": production,
    "/topics/{topic}/partitions": partitions,
    "/topics/{topic}/partitions/{partition:number}": partition,
    "/topics/{topic}/settings": settings,
    "/topics/{topic}/groups": topic_groups,
    "/groups": groups,
    "/transactions": transactions,
    "/schemas": schemas,
    "/schemas/ids/{id:number}": schema_by_id,
    "/schema": schema,
    "/pipelines": pipelines,
    "/pipeline": pipeline,
    "/security": security,
    "/group": group,
    "/charts/group": group_chart,
    "/charts/topic": topic_chart,
}
CHANGES: Final[dict[str, Page]] = {
    "/topics/new": create,
    "/topics/{topic}/send-again": resent,
    "/brokers/{broker:number}": change_broker,
    "/security/users": add_user,
    "/security/users/delete": delete_user,
    "/security/acls": add_acl,
    "/security/acls/delete": delete_acl,
    "/security/quotas": set_quota,
    "/group/plan": planned,
    "/group/apply": applied,
    "/group/delete": deleted,
    "/topics/{topic}/produce": produce,
    "/topics/{topic}/messages/{partition:number}/{offset:number}/send": send_again,
    "/topics/{topic}/settings": change,
    "/topics/{topic}/add-partitions": add,
    "/topics/{topic}/delete": delete,
    "/schema/check": checked,
    "/schema/register": registered,
    "/schema/delete-version": deleted_version,
    "/schema/delete": deleted_subject,
    "/schema/level": changed_level,
}
"""By POST alone."""
STREAMS: Final[dict[str, tuple[Open, Stream, str]]] = {
    "/topics/{topic}/tail": (open_tail, tailed, EVENTS),
    "/topics/{topic}/search": (open_search, searched, EVENTS),
    "/topics/{topic}/export": (open_export, exported, LINES),
}
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
        *(Route(path, stream(console, *parts), methods=["GET"]) for path, parts in STREAMS.items()),
        Route("/theme", choose_theme, methods=["GET"]),
        Route(LOGIN, log_in, methods=["GET", "POST"]),
        Route("/logout", log_out, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: missing}), hosts)


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
