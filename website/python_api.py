"""The reference of the Python packages, from their docstrings."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
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


def public_names(module: ModuleType) -> list[str]:
    """The functions and classes that a package lists, or has without being other names of some."""
    if listed := getattr(module, "__all__", None):
        return list(listed)
    return sorted(
        name
        for name, one in vars(module).items()
        if (inspect.isfunction(one) and not hasattr(one, "__wrapped__"))
        or (isinstance(one, type) and issubclass(one, Exception))
    )


def members(package: str) -> str:
    """A heading and the docstring of each public name of a package."""
    module = import_module(package)
    parts: list[str] = []
    for name in public_names(module):
        kind = "autofunction"
        if isinstance(found := getattr(module, name), type):
            kind = "autoexception" if issubclass(found, Exception) else "autoclass"
        parts.append(f"## {name}\n\n{directive(f'{kind}:: {package}.{name}', kind=kind)}")
    return "\n".join(parts)


def directive(text: str, *, kind: str = "") -> str:
    options = "   :members:\n   :member-order: bysource\n" if kind == "autoclass" else ""
    return f"```{{eval-rst}}\n.. {text}\n{options}```\n"
