"""A Python pipeline file: `PIPELINE = {...}`, a TOML file's tables as a literal, and functions.

The file is parsed and not run: reading it needs neither PySpark nor what it imports. Pure.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.spec.problem import Problem

NAME: Final = "PIPELINE"
DEFAULT_FUNCTION: Final = "transform"


@dataclass(frozen=True, slots=True)
class PythonSource:
    """The document, and how many arguments each function of the file needs."""

    document: dict[str, Any]
    functions: dict[str, int]


def read_python(text: str) -> PythonSource | Problem:
    """Return what a Python pipeline file holds, or what prevents it from being read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        return Problem("", f"is not Python{where}: {getattr(error, 'msg', error)}")
    for node in tree.body:
        value = _assigned(node)
        if value is None:
            continue
        try:
            document = ast.literal_eval(value)
        except ValueError:
            return Problem(
                NAME,
                "must be a literal (texts, numbers, lists, dicts): the file is read without being "
                "run. What differs between machines comes from the environment: '${NAME}'",
            )
        if not isinstance(document, dict):
            return Problem(NAME, "must be a dict, such as {'source': {...}, 'sink': {...}}")
        return PythonSource(document, read_functions(tree))
    return Problem("", f"has no {NAME} = {{'source': {{...}}, 'sink': {{...}}}} at its top level")


def read_functions(tree: ast.Module) -> dict[str, int]:
    """Return the functions at the top level and how many arguments each of them needs."""
    return {
        node.name: len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def _assigned(node: ast.stmt) -> ast.expr | None:
    """Return the value that a statement gives to PIPELINE."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return None
    named = any(isinstance(target, ast.Name) and target.id == NAME for target in targets)
    return node.value if named else None
