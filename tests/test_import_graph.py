"""Files import each other in one direction only; ARCHITECTURE.md draws the rooms as they are."""

import pytest
from tests.import_graph import cycle_in, drawing, drawn, imports_of, modules_of, reduced, rooms_of


@pytest.mark.parametrize("folder", ["src", "faults", "conformance", "demo", "bench", "components"])
def test_no_file_is_part_of_an_import_cycle(folder: str) -> None:
    assert cycle_in(imports_of(modules_of(folder))) == []


def test_the_drawing_in_architecture_is_the_code() -> None:
    rooms = rooms_of(imports_of(modules_of("src")))
    assert drawn() == drawing(rooms), "run: python -m tests.import_graph"


def test_only_the_node_knows_the_node() -> None:
    graph = imports_of(modules_of("src"))
    knowing = {name for name, imported in graph.items() if "ottla.node.node" in imported}
    assert {name.rsplit(".", 1)[0] for name in knowing} <= {
        "ottla.node",
        "ottla.cli",
        "ottla.testing.controlled",
    }


def test_a_cycle_is_found() -> None:
    one, two, three = frozenset({"b"}), frozenset({"c"}), frozenset({"b"})
    assert cycle_in({"a": one, "b": two, "c": three}) == ["b", "c"]
    assert cycle_in({"a": one, "b": two, "c": frozenset()}) == []


def test_arrows_that_follow_from_others_are_not_drawn() -> None:
    rooms = {"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()}
    assert reduced(rooms)["a"] == {"b"}
    assert drawing(rooms) == "graph TD\n    a --> b\n    b --> c\n"
