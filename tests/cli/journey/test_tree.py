"""The tree for people: as the documentation prints it, at every width, and in every state."""

import copy
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ottla.cli.journey.tree import rich_tree
from ottla.cli.screen import console, print_trimmed
from ottla.journey.words.line import Branch
from ottla.journey.words.row import format_row
from ottla.journey.words.tell import tell

PAGE = Path(__file__).parents[3] / "docs" / "journey.md"
DAY_MS = 86_400_000


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def document() -> dict[str, Any]:
    """The journey of the documentation."""
    (told,) = [block for block in blocks("json") if '"retention":' in block]
    said: dict[str, Any] = json.loads(told)
    return said


def printed(document: dict[str, Any], width: int, *, terminal: bool = False) -> str:
    out = StringIO()
    options: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    Console(file=out, width=width, force_terminal=terminal, **options).print(
        rich_tree(tell(document))
    )
    return out.getvalue()


def lines_of(branch: Branch) -> list[str]:
    return [branch.text(), *(line for below in branch.below for line in lines_of(below))]


def find(document: dict[str, Any], start: str) -> str:
    """The first line that begins so."""
    return next(line for line in lines_of(tell(document)) if line.startswith(start))


def test_the_documentation_prints_what_the_command_prints(document: dict[str, Any]) -> None:
    (tree,) = blocks("text")
    assert [line.rstrip() for line in printed(document, 100).splitlines()] == tree.splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_lost_at_any_width(document: dict[str, Any], width: int) -> None:
    said = printed(document, width)
    assert max(map(len, said.splitlines())) <= width
    for line in lines_of(tell(document)):
        words = "".join(line.split())
        assert words in re.sub(r"[\s│├└─]", "", said)


def test_nothing_is_added_to_the_words(document: dict[str, Any]) -> None:
    """The words are those of `ottla.journey.words`; the printer lays them out."""
    said = re.sub(r"[\s│├└─]", "", printed(document, 200))
    assert said == "".join("".join(line.split()) for line in lines_of(tell(document)))


def test_colour_is_for_terminals_only(document: dict[str, Any]) -> None:
    assert "\x1b[" not in printed(document, 80)
    assert "\x1b[" in printed(document, 80, terminal=True)


def test_message_content_cannot_control_the_terminal(document: dict[str, Any]) -> None:
    document["published"]["key"] = {"size_bytes": 9, "cut": False, "text": "\x1b[2Jgone"}
    document["published"]["client_ids"] = ["[red]x\x07"]
    said = printed(document, 80)
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]x" in said


def test_bounds_are_shown_as_bounds(document: dict[str, Any]) -> None:
    when = document["appended"]["when"]
    day = document["published"]["timestamp_ms"] // DAY_MS * DAY_MS

    def said(since_ms: int | None, until_ms: int | None) -> str:
        when.update(since_ms=since_ms, until_ms=until_ms, exact=since_ms == until_ms is not None)
        return find(document, "Appended").removeprefix("Appended  ")

    assert said(day + 1000, day + 1000).startswith("00:00:01.000")
    assert said(day, day + 99).startswith("between 00:00:00.000 and 00:00:00.099")
    assert said(None, day).startswith("before 00:00:00.000")
    assert said(day, None).startswith("after 00:00:00.000")
    assert said(None, None).startswith("time not recorded")
    dated = said(day + DAY_MS, day + DAY_MS + 5)
    assert re.match(r"between \d{4}-\d\d-\d\d 00:00:00.000 and 00:00:00.005", dated)


def test_exact_times_show_the_delay_since_publishing(document: dict[str, Any]) -> None:
    published = document["published"]["timestamp_ms"]
    document["appended"]["when"] = {
        "since_ms": published + 12,
        "until_ms": published + 12,
        "exact": True,
    }
    assert "  +12 ms" in find(document, "Appended")
    document["appended"]["when"]["since_ms"] = document["appended"]["when"]["until_ms"] = (
        published - 1500
    )
    assert "  -1.5 s" in find(document, "Appended")


def test_a_delivery_outside_delta_and_one_with_a_version_range(document: dict[str, Any]) -> None:
    one = document["delivered"][0]
    other = {
        **copy.deepcopy(one),
        "query": "files",
        "delta": None,
        "sink": None,
        "first_batch": 2,
        "last_batch": 5,
    }
    one["delta"].update(first_version=3, last_version=4, version=None)
    document["delivered"] = [one, other]
    assert "in Delta one of version 3 to 4" in find(document, f"pipeline {one['query']}")
    assert "delivered" in find(document, "pipeline files")
    assert "(one of batch 2 to 5)" in find(document, "pipeline files")


def test_removed_compacted_damaged_and_unrecorded_messages(document: dict[str, Any]) -> None:
    document.update(state="removed", retention=None, recorded=False)
    document["removed"] = {
        "when": {"since_ms": 0, "until_ms": 0, "exact": True},
        "reason": "retention.ms",
    }
    assert find(document, "Removed") == (
        "Removed  1970-01-01 00:00:00.000, by retention.ms: the log starts at offset 0"
    )
    assert "ottla.journey.enable is false" in find(document, "No times recorded")
    assert not any(line.startswith("Retention") for line in lines_of(tell(document)))
    document["state"] = "compacted"
    assert find(document, "Removed by compaction")
    document["state"] = "damaged"
    document["appended"]["damage"] = "stored crc 1, computed 2"
    assert find(document, "Damaged") == "Damaged: stored crc 1, computed 2"


def test_unknown_facts_of_a_deleted_message(document: dict[str, Any]) -> None:
    document["published"] = {"client_ids": [], "producer": None, "timestamp_ms": None}
    document["partition_chosen"] = None
    document["appended"] = {"when": document["appended"]["when"], "broker": 1}
    said = [branch.text().split("  ")[0] for branch in tell(document).below]
    assert said == ["Appended", "Replicated", "Read and delivered", "Retention"]


def test_long_values_are_cut_and_say_how_long_they_are(document: dict[str, Any]) -> None:
    document["published"]["value"] = {"size_bytes": 5000, "cut": True, "text": "x" * 2048}
    said = find(document, "value")
    assert said.endswith("… (4.9 KiB)")
    assert len(said) < 330
    document["published"]["value"] = None
    assert find(document, "value") == "value  null"


def test_a_group_that_missed_a_removed_message(document: dict[str, Any]) -> None:
    missed = {"group": "slow", "state": "missed", "committed_offset": 3, "behind": 2}
    late = {**document["read"][0], "group": "late", "only_after_removal": True}
    document |= {"read": [missed, late], "delivered": []}
    assert find(document, "slow") == "slow  missed: it was 2 messages behind, at offset 3"
    assert find(document, "committed past").endswith("after its removal: it may have missed it")


def test_a_clock_that_is_ahead(document: dict[str, Any]) -> None:
    document["published"]["clock_ahead_ms"] = 70
    ahead = find(document, "this is at least")
    assert ahead == "this is at least 70 ms ahead of the broker's clock"


@pytest.mark.parametrize(
    ("sequence", "delay_ms", "is_said"), [(0, 520, True), (0, 399, False), (1, 520, False)]
)
def test_librdkafkas_wait_for_a_producer_id(
    document: dict[str, Any], sequence: int, delay_ms: int, is_said: bool
) -> None:
    published = document["published"]
    published["producer"] = {"id": 1, "epoch": 0, "sequence": sequence}
    at_ms = published["timestamp_ms"] + delay_ms
    document["appended"]["when"] = {"since_ms": at_ms, "until_ms": at_ms, "exact": True}
    assert any(line.startswith("wait ") for line in lines_of(tell(document))) is is_said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("inserted", None, "current", None), "inserted; it is the row now"),
        (
            ("updated", 4, "superseded", 12),
            "updated that of offset 4; superseded by offset 12, in version 2",
        ),
        (("deleted", 4, "gone", None), "deleted that of offset 4"),
        (
            ("marked", None, "gone", None),
            "a row marked deleted: a tombstone, and its partition had no row of its key",
        ),
        (("skipped", None, "gone", None), "none: a tombstone, and the pipeline skips these"),
        (
            ("replaced", None, "deleted", 12),
            "none: another message of its batch has its key; deleted by offset 12, in version 2",
        ),
        (
            (None, None, None, None),
            "inserted or updated, which is not known; what became of it is not known",
        ),
    ],
)
def test_the_row_of_its_key(row: tuple[Any, ...], said: str) -> None:
    did, of, then, by = row
    by = by and {
        "offset": by,
        "first_batch": 1,
        "last_batch": 1,
        "first_version": 2,
        "last_version": 2,
    }
    assert format_row({"did": did, "of": of, "then": then, "by": by}) == said


@pytest.mark.parametrize(
    ("row", "also_in", "unless_in", "said"),
    [
        (
            ("inserted", "current"),
            [],
            [2, 3],
            "inserted; it is the row now, if its key was never in partitions 2 and 3",
        ),
        (
            (None, None),
            [2],
            [],
            "what became of it is not known: its key is in partition 2, too",
        ),
        (
            ("opened", None),
            [1, 2, 3],
            [],
            "a version of its key; what became of it is not known: its key is in partitions 1, 2 "
            "and 3, too",
        ),
    ],
)
def test_the_row_of_a_key_that_other_partitions_have(
    row: tuple[str | None, str | None], also_in: list[int], unless_in: list[int], said: str
) -> None:
    did, then = row
    document: dict[str, Any] = {"did": did, "of": None, "then": then, "by": None}
    assert format_row(document | {"also_in": also_in, "unless_in": unless_in}) == said


def test_a_key_that_is_in_other_partitions(document: dict[str, Any]) -> None:
    document["key_elsewhere"] = {
        "messages": [
            {"partition": 2, "offset": 7, "timestamp_ms": 5, "why": "murmur2 (Java's default)"}
        ],
        "not_searched": [3],
    }
    said = lines_of(tell(document))
    at = next(number for number, line in enumerate(said) if line.startswith("Partition chosen"))
    assert said[at + 1 : at + 3] == [
        "its key is in partition 2, too (newest: offset 7): murmur2 (Java's default)",
        "partition 3 not searched for its key",
    ]


def test_a_rejected_message_has_no_row(document: dict[str, Any]) -> None:
    one = document["delivered"][0]
    one["rejected"] = {
        "certain": True,
        "reason": "key is not a JSON object of the schema",
        "kept": "orders_rejected",
        "first_offset": 4,
        "last_offset": 9,
    }
    said = lines_of(tell(document))
    assert "rejected: key is not a JSON object of the schema; kept in orders_rejected" in said
    assert find(document, "pipeline").startswith(f"pipeline {one['query']}  read  ")
    assert not any(line.startswith(("table", "row")) for line in said)
    one["rejected"] |= {"reason": None, "kept": None}
    assert "rejected: the reason is not known" in lines_of(tell(document))


def test_where_it_is_not_known_whether_a_message_was_rejected_that_is_said(
    document: dict[str, Any],
) -> None:
    one = document["delivered"][0]
    one["rejected"] = {
        "certain": False,
        "reason": None,
        "kept": "orders_rejected",
        "first_offset": 4,
        "last_offset": 9,
    }
    assert find(document, "rejected perhaps") == (
        "rejected perhaps: some of offsets 4 to 9 were rejected; kept in orders_rejected. "
        "It is not known whether this one became a row"
    )
    assert not any(line.startswith("row") for line in lines_of(tell(document)))
    one["rejected"]["kept"] = None
    assert "some of offsets 4 to 9 may have been rejected. " in find(document, "rejected")
    one["rejected"]["last_offset"] = 4
    assert find(document, "rejected perhaps") == (
        "rejected perhaps: it is not known whether this message became a row"
    )


def test_every_kind_of_destination_has_its_place(document: dict[str, Any]) -> None:
    one = document["delivered"][0]
    one["delta"] = None
    one["sink"] = {
        "kind": "postgresql",
        "called": "PostgreSQL",
        "place": "public.flights in postgresql://db/lake",
        "place_is": "table",
        "rows": "upsert",
        "version": None,
        "first_version": None,
        "last_version": None,
    }
    assert "into PostgreSQL" in find(document, f"pipeline {one['query']}")
    assert "table  public.flights in postgresql://db/lake" in lines_of(tell(document))
    one["sink"] |= {"place": "/lake/f", "place_is": "folder"}
    one["sink"] |= {"first_version": 3, "last_version": 3}
    assert "folder /lake/f" in lines_of(tell(document))
    one["sink"] |= {"files": ["part-0.json"], "file_count": 3}
    said = lines_of(tell(document))
    at = said.index("files  those of list 3 in _spark_metadata")
    assert said[at + 1 : at + 3] == ["part-0.json", "and 2 more"]


@pytest.mark.parametrize("columns", ["30", "50", "80"])
def test_no_line_ends_with_spaces(
    document: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_trimmed(console(), rich_tree(tell(document)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert lines == [line.rstrip() for line in lines]
