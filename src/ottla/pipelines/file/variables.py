"""`${NAME}` in a file: the environment variable's value, so that no file holds a password. Pure.

`$${` stands for `${` itself. Names are letters, digits and `_`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ottla.pipelines.spec.problem import Problem

_VARIABLE: Final = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# SQL and function names are left alone: Spark's SQL has `${...}` of its own.
_LITERAL: Final = frozenset({"transform.sql"})


def replace_variables(
    value: Any, environ: Mapping[str, str], where: str, problems: list[Problem]
) -> Any:
    """Return the value with all variables in its texts replaced; adds a problem for each unset."""
    if where in _LITERAL or where.endswith(".transform.sql"):
        return value
    if isinstance(value, dict):
        return {
            name: replace_variables(
                below, environ, f"{where}.{name}" if where else str(name), problems
            )
            for name, below in value.items()
        }
    if isinstance(value, list):
        return [
            replace_variables(below, environ, f"{where}[{number}]", problems)
            for number, below in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return "${"
        if not _NAME.fullmatch(name):
            problems.append(
                Problem(where, f"${{{name}}} names no variable: letters, digits and '_'")
            )
        elif name not in environ:
            problems.append(
                Problem(where, f"the environment variable {name} is not set; type: export {name}=…")
            )
        return environ.get(name, "")

    return _VARIABLE.sub(replaced, value)
