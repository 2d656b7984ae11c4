"""The docstrings of a package's commands, read from their sources.

To import all commands of a group takes up to 0.3 s, as some load what they do with Spark or with a
broker. The help of the group and a shell that completes a word need neither.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def docstrings_of(package: Path) -> Iterator[tuple[str, str]]:
    """The module and the docstring of each command, and of each group, sorted by module."""
    for path in sorted(package.iterdir()):
        if path.name == "__init__.py":
            continue
        if path.suffix == ".py":
            found = command_docstring(path)
        elif (path / "__init__.py").is_file():
            own = path / "command.py"
            found = command_docstring(own if own.is_file() else path / "__init__.py")
        else:
            continue
        if found is not None:
            yield path.stem, found


def command_docstring(source: Path) -> str | None:
    """That of the function with the decorator `@command(...)`, of a package its own; None for a
    module without a command.
    """
    module = ast.parse(source.read_text("utf-8"))
    if source.name == "__init__.py":
        return ast.get_docstring(module) or ""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and any(map(_makes_command, node.decorator_list)):
            return ast.get_docstring(node) or ""
    return None


def _makes_command(decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=ast.Name(id="command")):
            return True
    return False
