"""Builds the site: gathers the pages, generates the reference, and runs Sphinx on them."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx

from ottla import __version__
from website import commands, python_api
from website.links import BrokenLink, rewritten
from website.pages import ELSEWHERE, GENERATED, HOME, ROOT, SECTIONS, decisions, sources
from website.pictures import rooms

FOLDER: Final = ROOT / ".cache" / "docs"
PICTURES: Final = ROOT / "docs" / "pictures"

SETTINGS: Final[dict[str, Any]] = {
    "project": "Ottla",
    "author": "",
    "release": __version__,
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
    # Blocks without a language are output, not Python.
    "highlight_language": "text",
    "html_theme": "furo",
    "html_static_path": [str(ROOT / "website" / "static")],
    "html_css_files": ["ottla.css"],
    "html_title": f"Ottla {__version__}",
    "html_copy_source": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    # Docstrings put code between single backticks.
    "default_role": "code",
    # As GitHub names them, so that a link to a heading works in both.
    "myst_heading_anchors": 4,
    "autodoc_typehints": "signature",
    "napoleon_numpy_docstring": False,
    "python_use_unqualified_type_names": True,
    "python_maximum_signature_line_length": 80,
}


def build(folder: Path) -> list[str]:
    """Build the site below `folder / "html"`; returns the faults, one line each."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    faults = gather(source)
    warnings = io.StringIO()
    application = Sphinx(
        srcdir=source,
        confdir=None,
        outdir=folder / "html",
        doctreedir=folder / "doctrees",
        buildername="html",
        confoverrides=SETTINGS,
        status=None,
        warning=warnings,
        freshenv=True,
    )
    application.build(force_all=True)
    found = warnings.getvalue().replace(f"{source}/", "")
    return faults + [line for line in found.splitlines() if line.strip()]


def gather(source: Path) -> list[str]:
    """Write every page below `source`; returns the broken links."""
    sites = sources()
    pictures = {
        str(path.relative_to(ROOT))
        for path in PICTURES.rglob("*")
        if path.suffix in (".svg", ".png")
    }
    faults: list[str] = []
    for name, page in sites.items():
        text = (ROOT / name).read_text()
        try:
            text = rewritten(text, name, sites, pictures)
        except BrokenLink as broken:
            faults.append(str(broken))
        if name == HOME:
            text += contents()
        elif name == "ARCHITECTURE.md":
            text = with_rooms(text, source)
        elif name == "docs/decisions/README.md":
            text += list_of(Path(each).name for each in decisions() if each != name)
        put(source / page, text)
    put(source / "commands.md", commands.page())
    put(source / "python-testing.md", python_api.testing_page())
    put(source / "python-pipelines.md", python_api.pipelines_page())
    if PICTURES.is_dir():
        shutil.copytree(PICTURES, source / "pictures")
    return faults


def with_rooms(text: str, source: Path) -> str:
    """The page with a picture in place of its Mermaid diagram, which only GitHub draws."""
    found = rooms.MERMAID.search(text)
    assert found, "ARCHITECTURE.md has a diagram of the rooms"
    put(source / "rooms.svg", rooms.draw(found[1]))
    return rooms.MERMAID.sub("![The rooms and their imports](rooms.svg)\n", text)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def contents() -> str:
    """The site's contents, for the home page."""
    parts: list[str] = []
    for section, pages in SECTIONS.items():
        names = [
            page if page in GENERATED else ELSEWHERE.get(page, page.removeprefix("docs/"))
            for page in pages
        ]
        parts.append(
            f"\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n" + "\n".join(names) + "\n```\n"
        )
    return "".join(parts)


def list_of(names: Any) -> str:
    return "\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
