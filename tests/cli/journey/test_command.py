"""`ottla journey`: what is asked, what is printed, and what wrong words are answered with."""

import json
from typing import Any

import pytest

from ottla.cli.app import run_command
from ottla.cli.journey.list import MAX_FATES
from ottla.client.admin.asked_journeys import Journeys
from ottla.client.errors import UnreachableError

RANGES = [
    {"partition": 0, "start_offset": 0, "end_offset": 0},
    {"partition": 1, "start_offset": 5, "end_offset": 30},
]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the broker was asked (`asked`), and what it answers (`answer`)."""
    talk: dict[str, Any] = {}

    def ask(journeys: Journeys, question: dict[str, Any]) -> dict[str, Any]:
        talk["clients"] = talk.get("clients", set()) | {id(journeys)}
        if question.get("offset") is not None and "messages" in talk["answer"]:
            talk["explained"] = [*talk.get("explained", ()), question["offset"]]
            journey: Any = talk.get("journeys", {}).get(question["offset"], STORED)
            if isinstance(journey, Exception):
                raise journey
            found: dict[str, Any] = journey
            return found
        talk["asked"] = question
        talk["bootstrap"] = journeys.bootstrap
        answer: dict[str, Any] = talk["answer"]
        talk["answer"] = talk.pop("next", answer)
        return answer

    monkeypatch.setattr(Journeys, "ask", ask)
    return talk


def refusal(code: str, message: str, **more: Any) -> dict[str, Any]:
    return {"journey": 1, "error": {"code": code, "message": message, **more}}


NOT_YET = {
    "journey": 1,
    "topic": "flights",
    "partition": 1,
    "offset": 90,
    "state": "not_yet_written",
    "recorded": True,
    "log": {"start_offset": 0, "end_offset": 80, "high_watermark": 80, "partitions": 3},
    "published": None,
    "appended": None,
    "read": [],
    "delivered": [],
}

STORED = NOT_YET | {"state": "stored"}


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["1", "90"], {"partition": 1, "offset": 90}),
        (["--key", "N1"], {"partition": None, "key": "TjE="}),
        (["2", "-k", "N1"], {"partition": 2, "key": "TjE="}),
        (["--key-base64", "/w=="], {"partition": None, "key": "/w=="}),
        (["--latest"], {"partition": None, "latest": True}),
        (["1"], {"partition": 1, "offset": None}),
        ([], {"partition": None, "offset": None}),
    ],
)
def test_the_request(
    broker: dict[str, Any],
    words: list[str],
    asked: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker["answer"] = NOT_YET
    assert run_command(["journey", "flights", *words, "-b", "somewhere:9"]) == 0
    assert broker["asked"] == {"journey": 1, "topic": "flights", **asked}
    assert broker["bootstrap"] == "somewhere:9"
    capsys.readouterr()


def test_watching_stays_with_the_message_that_was_found(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A newer message must not take its turn."""
    broker["answer"] = NOT_YET | {"read": [{"group": "g", "state": "not_yet"}]}
    broker["next"] = NOT_YET | {"read": [{"group": "g", "state": "read"}]}
    words = ["journey", "flights", "--latest", "--watch", "--every", "0.2", "--json"]
    assert run_command(words) == 0
    assert broker["asked"] == {"journey": 1, "topic": "flights", "partition": 1, "offset": 90}
    assert '"state": "read"' in capsys.readouterr().out


def test_json_is_the_document(broker: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    broker["answer"] = NOT_YET
    assert run_command(["journey", "flights", "1", "90", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == NOT_YET


def test_the_tree_is_for_people(broker: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    broker["answer"] = NOT_YET
    assert run_command(["journey", "flights", "1", "90"]) == 0
    assert "Not yet written: the log ends at offset 80" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1", "90", "--latest"], "give either OFFSET or --latest, not both"),
        (["--key", "a", "--latest"], "give either --key or --latest, not both"),
        (["--key-base64", "?"], "--key-base64 must be base64, not '?'"),
        (["x"], "must be a whole number, not 'x'"),
        (["1", "-5"], "-5"),
        (["1", str(2**63)], "must be 9223372036854775807 or less"),
        (["--offset", "5"], "No such option"),
        (["1", "90", "--all"], "--all lists the messages of a key; give --key KEY"),
        (["--key", "a", "--all", "--table", "t"], "--all and --table exclude each other"),
        (["--key", "a", "--all", "--watch"], "--all and --watch exclude each other"),
        (["1", "90", "--watch", "--table", "t"], "--watch and --table exclude each other"),
        (["1", "90", "--watch", "--every", "0"], "--every"),
    ],
)
def test_wrong_arguments_fail_before_any_request(
    broker: dict[str, Any], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["journey", "flights", *words]) == 2
    assert said in capsys.readouterr().err
    assert "asked" not in broker


def content(text: str) -> dict[str, Any]:
    return {"size_bytes": len(text), "cut": False, "text": text}


def listed(*, whole: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "journey": 1,
        "topic": "flights",
        "messages": [
            {"partition": 1, "offset": 5, "timestamp_ms": 1000, "value": content("a\tb")},
            {"partition": 1, "offset": 70, "timestamp_ms": -1, "value": None},
        ],
        "searched": [
            {"partition": 0, "down_to_offset": 0, "whole": True},
            {"partition": 1, "down_to_offset": 0 if whole else 5, "whole": whole},
        ],
        **more,
    }


def test_all_messages_of_a_key_are_a_table(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed()
    read = {"group": "g", "state": "read", "doubt": None}
    broker["journeys"] = {
        5: STORED | {"read": [read]},
        70: refusal("not_leader", "partition 1 is led by another broker"),
    }
    assert run_command(["journey", "flights", "--key", "N1", "--all"]) == 0
    assert broker["asked"]["all"] is True
    said = capsys.readouterr()
    assert [line.split(maxsplit=2) for line in said.out.splitlines()] == [
        ["partition", "offset", "time                         value  fate"],
        ["1", "5", "1970-01-01 00:00:01.000 UTC  a\\tb   read by g"],
        ["1", "70", "-                            null   -"],
    ]
    assert said.err.splitlines() == [
        "2 messages with this key.",
        "The fate of 1 message is not shown. For one: ottla journey flights PARTITION OFFSET",
    ]


def test_a_leader_that_left_costs_one_fate(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed()
    broker["journeys"] = {70: UnreachableError("cannot reach a broker at b1:9092.")}
    assert run_command(["journey", "flights", "--key", "N1", "--all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["messages"]
    assert [one["fate"] is None for one in said] == [False, True]


def test_the_fates_of_the_newest_are_asked_for(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed()
    broker["answer"]["messages"] = [
        {"partition": 1, "offset": number, "timestamp_ms": 9_000 - number, "value": None}
        for number in range(MAX_FATES + 3)
    ]
    assert run_command(["journey", "flights", "--key", "N1", "--all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["messages"]
    assert [one["fate"] is None for one in said] == [False] * MAX_FATES + [True] * 3
    assert broker["explained"] == list(range(MAX_FATES))
    assert len(broker["clients"]) == 1


def test_a_list_says_what_was_not_searched(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed(whole=False, elsewhere=[2, 3])
    assert run_command(["journey", "flights", "--key", "N1", "--all"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("The newest 2 messages with this key.")
    assert "Not searched: partition 1 before offset 5." in said
    assert "Give a PARTITION to search it alone; ottla consume flights --key KEY reads all" in said
    assert "Partitions 2, 3: no leader answered." in said


def test_one_partition_is_not_sent_to_itself(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed(whole=False)
    broker["answer"]["searched"] = broker["answer"]["searched"][1:]
    assert run_command(["journey", "flights", "1", "--key", "N1", "--all"]) == 0
    said = capsys.readouterr().err
    assert "\nottla consume flights --key KEY reads all.\n" in said
    assert "PARTITION" not in said


def test_a_list_as_json_has_what_is_missing(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = listed()
    assert run_command(["journey", "flights", "--key", "N1", "--all", "--json"]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [one.pop("fate")["state"] for one in document["messages"]] == ["stored", "stored"]
    assert document == listed(unanswered=[])
    assert said.err == ""


def test_the_error_names_the_existing_offsets(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = refusal("which_offset", "say which message", partitions=RANGES)
    assert run_command(["journey", "flights"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "ottla journey: say which message.",
        "  partition 0: empty, next offset 0",
        "  partition 1: offsets 5 to 29",
        "  For example: ottla journey flights 1 29",
        "  Or: ottla journey flights --latest, or with --key KEY",
    ]


def test_an_unknown_topic_suggests_the_nearest(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = refusal("unknown_topic", "there is no topic 'flihgts'", topics=["flights"])
    assert run_command(["journey", "flihgts", "0", "0"]) == 1
    assert "Did you mean 'flights'?" in capsys.readouterr().err
    broker["answer"] = refusal("unknown_topic", "there is no topic 'x'", topics=["flights"])
    run_command(["journey", "x", "0", "0"])
    assert "ottla topic list" in capsys.readouterr().err


def test_the_error_says_how_far_the_search_came(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    searched = [{"partition": 0, "down_to_offset": 700, "whole": False}]
    broker["answer"] = refusal("key_not_found", "no record has this key", searched=searched)
    assert run_command(["journey", "flights", "--key", "a"]) == 1
    assert "partition 0 to 700" in capsys.readouterr().err


def test_a_journey_of_another_version_is_reported(
    broker: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    broker["answer"] = {**NOT_YET, "journey": 2}
    assert run_command(["journey", "flights", "1", "90"]) == 1
    assert "version 2" in capsys.readouterr().err
