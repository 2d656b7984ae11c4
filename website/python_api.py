"""The reference of the Python packages, from their docstrings."""

from __future__ import annotations

from importlib import import_module
from typing import Final

TESTING: Final = """# Python: ottla.testing

[Brokers and clusters in your own tests](testing.md) shows the kit at work. This page is generated
from the docstrings.

## Fixtures

pytest finds these wherever Ottla is installed.

"""
PIPELINES: Final = """# Python: ottla.pipelines

[Pipelines](pipelines.md) shows them at work. This page is generated from the docstrings.

"""
FIXTURES: Final = ("ottla_broker", "ottla_cluster")


def testing_page() -> str:
    """`ottla.testing` with its pytest fixtures."""
    fixtures = "\n".join(directive(f"autofunction:: ottla.testing.plugin.{f}") for f in FIXTURES)
    return TESTING + fixtures + "\n" + members("ottla.testing")


def pipelines_page() -> str:
    """`ottla.pipelines`."""
    return PIPELINES + members("ottla.pipelines")


def members(package: str) -> str:
    """A heading and the docstring of each public name of a package."""
    module = import_module(package)
    parts: list[str] = []
    for name in module.__all__:
        kind = "autofunction"
        if isinstance(found := getattr(module, name), type):
            kind = "autoexception" if issubclass(found, Exception) else "autoclass"
        parts.append(f"## {name}\n\n{directive(f'{kind}:: {package}.{name}', kind=kind)}")
    return "\n".join(parts)


def directive(text: str, *, kind: str = "") -> str:
    options = "   :members:\n   :member-order: bysource\n" if kind == "autoclass" else ""
    return f"```{{eval-rst}}\n.. {text}\n{options}```\n"
