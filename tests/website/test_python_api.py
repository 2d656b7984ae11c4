"""The references of the Python packages have every public name."""

from __future__ import annotations

import ottla.testing
from website import python_api


def test_every_public_name_has_a_section() -> None:
    text = python_api.testing_page()
    assert all(f"\n## {name}\n" in text for name in ottla.testing.__all__)
    assert "autofunction:: ottla.testing.plugin.ottla_broker" in text


def test_classes_exceptions_and_functions_are_told_apart() -> None:
    text = python_api.members("ottla.testing")
    assert "autoclass:: ottla.testing.Cluster\n   :members:" in text
    assert "autoexception:: ottla.testing.KitError" in text
