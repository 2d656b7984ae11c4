"""One request for a page, as the page's function sees it, and what runs that function.

The function blocks, so it runs in a thread of the console's workers, with a client of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from ottla.client.client import Client
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.errors import BadFormError, ForbiddenError
from ottla.console.failure_page import failure_page
from ottla.console.sessions import Session
from ottla.console.templates import rendered
from ottla.wording.errors import ReportedError

MAX_FORM_BYTES: Final = 8 << 20
"""A record of some MiB may be typed into a form."""
MAX_FIELDS: Final = 2000
MAX_READ_AT_ONCE: Final = 64 << 10
"""Larger forms are read in a thread: 8 MiB take half a second."""
MAX_NUMBER: Final = 2**63 - 1
LOGIN: Final = "/login"
THEMES: Final = ("light", "dark")
THEME_COOKIE: Final = "ottla-console-theme"


@dataclass(slots=True)
class Visit:
    """`form`: of a POST. `path`: what the address names, such as a topic."""

    console: Console
    session: Session
    client: Client
    url: str
    path: Mapping[str, Any]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    theme: str = ""

    @property
    def access(self) -> Access:
        return self.session.access

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """The page of a template; it begins with what the session has to say."""
        messages, self.session.messages = self.session.messages, []
        return rendered(
            template,
            self.console,
            self.session,
            status=status,
            url=self.url,
            theme=self.theme,
            messages=messages,
            **values,
        )

    def go(self, url: str, said: str | None = None) -> Response:
        """After a change: the page at `url`, which says what was done."""
        if said is not None:
            self.session.say(said)
        return RedirectResponse(url, 303)

    def number(self, name: str, least: int = 0, most: int = MAX_NUMBER) -> int | None:
        """A field of the form or of the address as a number; None if it is empty. Raises
        BadFormError.
        """
        text = self.text(name)
        if not text:
            return None
        number = int(text) if text.removeprefix("-").isdecimal() and len(text) < 20 else None
        if number is None or not least <= number <= most:
            raise BadFormError(
                f"{name} must be a whole number from {least} to {most}, not {text!r}."
            )
        return number

    def text(self, name: str) -> str:
        """A field of the form or of the address without spaces around it; `""` if it is missing."""
        return self.form.get(name, self.query.get(name, "")).strip()


Page = Callable[[Visit], Response]


def endpoint(console: Console, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for a page."""

    async def answer(request: Request) -> Response:
        session, is_new = console.session(request.cookies)
        if session is None:
            return to_login(request)
        theme = request.cookies.get(THEME_COOKIE, "")
        url = own_url(request)
        try:
            form = await checked_form(request, session, read_only=console.read_only)
            response = await console.workers.run(
                lambda: visited(console, session, page, request, url, form, theme)
            )
        except ReportedError as error:
            response = failure_page(error, console, session, url, theme)
        if is_new:
            keep(response, console, session)
        return response

    return answer


def visited(
    console: Console,
    session: Session,
    page: Page,
    request: Request,
    url: str,
    form: Mapping[str, str],
    theme: str,
) -> Response:
    """In a thread: the page, with a client."""
    with session.access.client() as client:
        visit = Visit(
            console,
            session,
            client,
            url,
            request.path_params,
            dict(request.query_params),
            form,
            theme if theme in THEMES else "",
        )
        try:
            return page(visit)
        finally:
            if request.method == "POST":
                # After an error, too: some of it, or all, may have been changed before.
                session.access.forget()


async def checked_form(request: Request, session: Session, *, read_only: bool) -> dict[str, str]:
    """The form of a POST, whose token was the session's. Raises VisitError."""
    if request.method != "POST":
        return {}
    form = await read_form(request)
    if not session.owns(form.get("token", "")):
        raise ForbiddenError(
            "the form is of another session.", "Go back, load the page again, and repeat it."
        )
    if read_only:
        raise ForbiddenError("this console changes nothing.", "It was started with --read-only.")
    return form


async def read_form(request: Request, most_bytes: int = MAX_FORM_BYTES) -> dict[str, str]:
    """The fields of a form. Raises BadFormError."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most_bytes:
                raise BadFormError(f"the form has more than {most_bytes:,} bytes.")
    except ClientDisconnect:
        raise BadFormError("the form did not arrive.") from None
    if request.headers.get("content-type", "").partition(";")[0].strip() != (
        "application/x-www-form-urlencoded"
    ):
        raise BadFormError("a form must be application/x-www-form-urlencoded.")
    if len(body) <= MAX_READ_AT_ONCE:
        return fields_of(body)
    return await asyncio.to_thread(fields_of, body)


def fields_of(body: bytearray) -> dict[str, str]:
    """Raises BadFormError."""
    try:
        return dict(
            parse_qsl(
                body.decode("utf-8"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_FIELDS,
            )
        )
    except ValueError as error:
        raise BadFormError(f"the form cannot be read: {error}.") from None


def own_url(request: Request) -> str:
    """The address of a page, without the host."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}"


def to_login(request: Request) -> Response:
    """Everybody else logs in first, and comes back to the page that he wanted. A part of a page
    that asks again (htmx) takes the whole page there.
    """
    wanted = own_url(request) if request.method in ("GET", "HEAD") else "/"
    url = f"{LOGIN}?{urlencode({'then': wanted})}"
    if "hx-request" in request.headers:
        return Response(headers={"hx-redirect": url})
    return RedirectResponse(url, 303)


def keep(response: Response, console: Console, session: Session) -> None:
    """Have the browser keep the name of the session."""
    response.set_cookie(
        console.cookie,
        session.name,
        httponly=True,
        samesite="strict",
        secure=console.is_secure,
        path="/",
    )
