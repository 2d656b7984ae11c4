"""See `survey`."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.damage.damages import DAMAGES
from tests.damage.survey import (
    CASES,
    FILES,
    REFUSALS,
    STOPS,
    Case,
    Folders,
    check_kept,
    check_told,
    damage,
    prepare,
    seen_on,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return asyncio.run(prepare(tmp_path_factory.mktemp("folders")))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(each, id=str(each), marks=[] if each.is_sampled else [pytest.mark.full])
        for each in CASES
    ],
)
async def test_a_damaged_file(
    case: Case,
    folders: Folders,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = tmp_path / "data"
    path = damage(case, folders, data, monkeypatch)
    try:
        found = await seen_on(data)
    except REFUSALS as error:
        line = str(error)
        assert str(path) in line
        assert "\n" not in line
        return
    said = []
    for record in caplog.records:
        assert record.exc_info is None, record.getMessage()
        if record.levelno >= logging.WARNING:
            said.append(record.getMessage())
    check_told(case, found, folders.seen[case.how], said)
    monkeypatch.undo()
    check_kept(found, await seen_on(data))


def test_the_sample_has_each_file_and_each_damage_after_either_stop() -> None:
    sampled = [each for each in CASES if each.is_sampled]
    assert len(sampled) < len(CASES) * 0.4
    for how in STOPS:
        some = [each for each in sampled if each.how == how]
        expected = {each.name for each in FILES if each.only in ("", how)}
        assert {each.file.name for each in some} == expected
        assert {each.damage.name for each in some} == {each.name for each in DAMAGES}


def test_a_harmed_topic_and_a_silent_loss_are_found(folders: Folders) -> None:
    """The check itself."""
    case = CASES[0]
    sound = folders.seen[case.how]
    lost = sound._replace(written={**sound.written, case.partition: ("none", 7)})
    check_told(case, sound, sound, [])
    check_told(case, lost, sound, [f"/data/{case.partition} now ends at offset 7"])
    with pytest.raises(AssertionError, match="silent"):
        check_told(case, lost, sound, ["something else"])
    harmed = sound._replace(written={**sound.written, "compacted-0": ("none", 7)})
    with pytest.raises(AssertionError, match="another partition"):
        check_told(case, harmed, sound, [f"/data/{case.partition} now ends at offset 7"])
