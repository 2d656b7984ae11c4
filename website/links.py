"""The links of a page, from the repository's folders to the site's. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Mapping
from typing import Final

LINK: Final = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
CODE: Final = re.compile(r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


class BrokenLink(Exception):  # noqa: N818 - a fault of the page
    """A link of a page to a file that is not part of the site."""


def rewritten(text: str, source: str, sites: Mapping[str, str], files: Container[str]) -> str:
    """The page with its links as the site has them.

    `source`: the page's path in the repository. `sites`: each page's path in the repository and on
    the site. `files`: pictures and other files that keep their path below `docs`.

    Raises BrokenLink for a link to anything else.
    """

    def of(match: re.Match[str]) -> str:
        return f"{match[1]}({target(match[2], source, sites, files)})"

    return outside_code(text, lambda part: LINK.sub(of, part))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text, with `change` applied to what is not code."""
    parts: list[str] = []
    at = 0
    for code in CODE.finditer(text):
        parts += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, change(text[at:])])


def target(link: str, source: str, sites: Mapping[str, str], files: Container[str]) -> str:
    """One link of the page `source`, relative to its path on the site."""
    path, mark, heading = link.partition("#")
    if ":" in path or not path:
        return link
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    page = sites.get(meant) or sites.get(f"{meant}/README.md")
    if page is None and meant in files:
        page = meant.removeprefix("docs/")
    if page is None:
        raise BrokenLink(f"{source}: {link} is neither a page of the site nor a picture")
    return posixpath.relpath(page, posixpath.dirname(sites[source]) or ".") + mark + heading
