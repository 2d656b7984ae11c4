"""`ottla log stray delete`, as typed, on the folder of a real node."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.cli.log.stray.stray_node import Typed, set_aside, strays


async def test_stray_folders_are_deleted_after_a_question(
    start_node: Any, eventually: Any, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_call = await set_aside(start_node, eventually)
    data = node_call.node.config.data_folder
    (folder,) = strays(data)
    code, _, err = await typed("delete", folder)
    assert code == 2
    asked = r"ottla log stray delete: Delete the records of t-0 \(.*B\)\? Cannot ask"
    assert re.match(asked, err)
    assert folder.exists()
    monkeypatch.setattr("ottla.cli.confirmation.ask", lambda question, what_else: False)
    code, _, err = await typed("delete", folder)
    assert (code, err) == (1, "Nothing was deleted.\n")
    assert folder.exists()
    code, out, _ = await typed("delete", folder, "--yes")
    assert (code, out) == (0, f"Deleted {folder}.\n")
    assert [each.name for each in data.iterdir() if each.is_dir()] == []
