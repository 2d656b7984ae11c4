"""Pages from templates. Every value is escaped: a topic's name, a key or a record may be HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from ottla import __version__
from ottla.console.console import Console
from ottla.console.sessions import Session
from ottla.journey.formatting import format_elapsed
from ottla.wording.plural import plural
from ottla.wording.sizes import size_text

FOLDER: Final = Path(__file__).parent / "templates"
MAX_MS: Final = 253_402_300_799_999
"""9999-12-31: a producer may send any number as a time."""
UNKNOWN: Final = "–"


@cache
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(
        number=number,
        size=size,
        time=time,
        elapsed=elapsed,
        plural=plural,
        path=lambda text: quote(str(text), safe=""),
    )
    found.globals["address"] = address
    found.globals["version"] = __version__
    return found


def rendered(
    template: str,
    console: Console,
    session: Session | None,
    *,
    status: int = 200,
    **values: Any,
) -> Response:
    """The response with this page."""
    text = environment().get_template(template).render(console=console, session=session, **values)
    # Names of headers may have bytes that are not UTF-8, kept as lone surrogates.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def number(value: int | None) -> str:
    """`12,345`."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """`1.2 GB`."""
    return UNKNOWN if value is None else size_text(value)


def elapsed(value_ms: int | None) -> str:
    return UNKNOWN if value_ms is None else format_elapsed(value_ms)


def time(at_ms: int | None) -> str:
    """A time in UTC; `static/times.js` shows it in the reader's zone, too."""
    if at_ms is None or not 0 <= at_ms <= MAX_MS:
        return UNKNOWN if at_ms is None or at_ms < 0 else f"{at_ms} ms"
    seconds, rest_ms = divmod(at_ms, 1000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest_ms:03d}"
    exact = f"{text.replace(' ', 'T')}Z"
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(exact, text, text)


def address(path: str, /, **query: object) -> str:
    """A path with a query; values that are None or empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
