"""No test replaces a class or function of a compiled module: compiled callers would not notice.

They call each other in C, and their constants are part of the machine code (see
docs/decisions/compiled.md), so the test would pass or fail without the replacement. Replace the
system's call below it (`os.pwritev`), or something that is not compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.accelerator import COMPILED

ROOT = Path(__file__).parent.parent
RUNS_SOURCES = frozenset({"tests/log/model/planted_in_compiled.py"})
"""Run only by processes in which nothing is compiled, which they make sure of."""
FOLDERS = ("tests", "simulation", "faults", "bench", "components", "conformance")
COMPILED_MODULES = frozenset(f"ottla.{path.replace('/', '.')}" for path in COMPILED)
REPLACES = frozenset({"setattr", "delattr", "patch", "object"})
"""The last part of `monkeypatch.setattr`, `mock.patch` and `mock.patch.object`."""


def _names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for, with its module."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
        elif isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.split(".")[0]] = (
                    each.name if each.asname else each.name.split(".")[0]
                )
    return names


def _target(node: ast.expr, names: dict[str, str]) -> str:
    """The full name of what is replaced, or of the object whose attribute is; "" if unknown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _target(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _is_compiled(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:count]) in COMPILED_MODULES for count in range(1, len(parts) + 1))


def replaced_in_vain(source: str) -> Iterator[str]:
    """The line and target of each replacement of something compiled."""
    tree = ast.parse(source)
    names = _names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in REPLACES and _is_compiled(target := _target(node.args[0], names)):
            yield f"line {node.lineno} replaces a part of {target}"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("from ottla.log.log import Log\nmonkeypatch.setattr(Log, 'append', None)", 1),
        ("from ottla.log import segment\nmonkeypatch.setattr(segment, 'MAX', 1)", 1),
        ("from ottla.log import segment as s\npatch.setattr(s.Segment, 'append', None)", 1),
        ("import ottla.log.log\npatch.setattr(ottla.log.log.Log, 'append', None)", 1),
        ("monkeypatch.setattr('ottla.log.log.Log.append', None)", 1),
        ("mock.patch('ottla.records.check.check_batch')", 1),
        ("from ottla.log.flush import FlushTask\nmonkeypatch.setattr(FlushTask, 'run', None)", 0),
        ("monkeypatch.setattr('ottla.log.log_reader.read', None)", 0),
        ("import os\nmonkeypatch.setattr(os, 'pwritev', None)", 0),
    ],
)
def test_replacements_of_compiled_code_are_found(code: str, lines: int) -> None:
    assert len(list(replaced_in_vain(code))) == lines


def test_nothing_compiled_is_replaced() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {what}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in RUNS_SOURCES
        for what in replaced_in_vain(path.read_text())
    ]
    assert not found, "\n".join(found)
