"""The examples of docs/testing.md and docs/testing-compared.md.

pytest collects them here, as if this file contained them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "testing.md", DOCS / "testing-compared.md")
SHARED = {"ottla_broker", "ottla_topic"}


def examples(page: Path) -> Iterator[Callable[..., object]]:
    """The test functions on the page, with the page's lines for tracebacks."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines_before = text.count("\n", 0, found.start(1))
        names: dict[str, object] = {"__name__": __name__}
        exec(compile("\n" * lines_before + found[1], str(page), "exec"), names)
        for name, value in names.items():
            if name.startswith("test_") and callable(value):
                yield value


def needs_its_own_broker(example: Callable[..., object]) -> bool:
    """Such a test takes a second or more; the others share the broker of the run."""
    marks = [mark.name for mark in getattr(example, "pytestmark", [])]
    return "ottla" in marks or not SHARED & set(inspect.signature(example).parameters)


for example in chain.from_iterable(map(examples, PAGES)):
    assert example.__name__ not in globals(), f"two examples are named {example.__name__}"
    if needs_its_own_broker(example):
        example = pytest.mark.full(example)
    globals()[example.__name__] = example
