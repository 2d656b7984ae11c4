"""A journey's lines as a tree of rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.wrapping import printable
from ottla.journey.words.line import BAD, GOOD, NAME, PLAIN, STEP, WAITING, WEAK, Branch

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

STYLES: Final = {
    PLAIN: "",
    STEP: "bold cyan",
    NAME: "bold",
    WEAK: "dim",
    GOOD: "green",
    WAITING: "yellow",
    BAD: "red",
}


def rich_tree(branch: Branch) -> Tree:
    """The lines of `tell`. Text from outside is made printable."""
    from rich.text import Text
    from rich.tree import Tree

    def styled(line: Branch) -> Text:
        return Text.assemble(*((printable(text), STYLES[tone]) for text, tone in line.parts))

    tree = Tree(styled(branch), guide_style=STYLES[WEAK])
    _grow(tree, branch.below, styled)
    return tree


def _grow(tree: Tree, branches: Iterable[Branch], styled: Callable[[Branch], Any]) -> None:
    for branch in branches:
        _grow(tree.add(styled(branch)), branch.below, styled)
