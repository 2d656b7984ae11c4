"""Which file imports which, read from the source: cycles, and the drawing of the rooms.

`python -m tests.import_graph` rewrites the drawing in ARCHITECTURE.md. Imports inside functions and
those for type checking alone count like all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "ARCHITECTURE.md"
BEGIN: Final = "```mermaid\n"
END: Final = "```\n"

Graph = Mapping[str, frozenset[str]]


def modules_of(*folders: str) -> dict[str, Path]:
    """The files below these folders of the repository, by dotted name."""
    found: dict[str, Path] = {}
    for folder in folders:
        top = ROOT / folder
        above = top if folder == "src" else ROOT
        for path in sorted(top.rglob("*.py")):
            if path.name != "__init__.py":
                found[".".join(path.relative_to(above).with_suffix("").parts)] = path
    return found


def imports_of(modules: Mapping[str, Path]) -> Graph:
    """The modules among `modules` that each of them imports."""
    return {name: frozenset(_imported(path, modules) - {name}) for name, path in modules.items()}


def _imported(path: Path, modules: Mapping[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= submodules & modules.keys() or {node.module}
    return found & modules.keys()


def cycle_in(graph: Graph) -> list[str]:
    """The modules of one import cycle, in order; empty if there is none."""
    done: set[str] = set()
    for start in graph:
        found = _cycle_from(start, graph, [], done)
        if found:
            return found
    return []


def _cycle_from(name: str, graph: Graph, path: list[str], done: set[str]) -> list[str]:
    if name in path:
        return path[path.index(name) :]
    if name in done:
        return []
    for imported in sorted(graph[name]):
        found = _cycle_from(imported, graph, [*path, name], done)
        if found:
            return found
    done.add(name)
    return []


def rooms_of(graph: Graph) -> Graph:
    """The rooms, which are the folders of `ottla`, and the other rooms that each imports."""
    rooms: dict[str, set[str]] = {}
    for name, imported in graph.items():
        if name.count(".") < 2:
            continue
        room = name.split(".")[1]
        others = {each.split(".")[1] for each in imported if each.count(".") > 1}
        rooms.setdefault(room, set()).update(others - {room})
    return {room: frozenset(others) for room, others in rooms.items()}


def reduced(rooms: Graph) -> Graph:
    """The same graph without the arrows that follow from others."""
    below = {room: _reachable(room, rooms) for room in rooms}
    return {
        room: frozenset(
            each
            for each in others
            if not any(each in below[other] for other in others if other != each)
        )
        for room, others in rooms.items()
    }


def _reachable(room: str, rooms: Graph) -> frozenset[str]:
    found: set[str] = set()
    to_visit = [*rooms[room]]
    while to_visit:
        each = to_visit.pop()
        if each not in found:
            found.add(each)
            to_visit.extend(rooms[each])
    return frozenset(found)


def drawing(rooms: Graph) -> str:
    """The rooms as a Mermaid diagram, an arrow from each room to those that it imports."""
    arrows = (f"    {room} --> {other}" for room, other in _sorted_arrows(reduced(rooms)))
    return "\n".join(("graph TD", *arrows)) + "\n"


def _sorted_arrows(rooms: Graph) -> Iterable[tuple[str, str]]:
    return sorted((room, other) for room, others in rooms.items() for other in others)


def drawn() -> str:
    """The drawing as ARCHITECTURE.md has it."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index(BEGIN) + len(BEGIN)
    return text[begin : text.index(END, begin)]


def main() -> None:
    """Replaces the drawing in ARCHITECTURE.md."""
    text = PAGE.read_text(encoding="utf-8")
    new = drawing(rooms_of(imports_of(modules_of("src"))))
    PAGE.write_text(text.replace(BEGIN + drawn() + END, BEGIN + new + END), encoding="utf-8")


if __name__ == "__main__":
    main()
