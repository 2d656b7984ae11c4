"""The tree keeps to the rules that a reader relies on: names say what is inside."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "bench", "conformance", "demo", "faults", "simulation")
BANNED_NAMES = ("util", "utils", "helper", "helpers", "manager", "managers", "misc", "common")

FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_name_says_what_is_inside(path: Path) -> None:
    words = path.stem.lower().split("_")
    assert not set(words) & set(BANNED_NAMES)


def test_each_test_file_stands_for_a_source_file() -> None:
    """One test file per source file: `tests/log/test_segment.py` is for `src/ottla/log/segment.py`.

    `tests/system/` holds those that test the product as a whole, from outside.
    """
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        room = path.parent.relative_to(ROOT / "tests")
        if room.name == "system":
            continue
        source = path.stem.removeprefix("test_") + ".py"
        # A subfolder of tests may be a room of its own or a part of the room above it.
        places = [
            root / folder / source
            for root in (ROOT / "src" / "ottla", ROOT)
            for folder in (room, room.parent)
        ]
        assert any(place.is_file() for place in places), f"{name_of(path)} tests no source file"
