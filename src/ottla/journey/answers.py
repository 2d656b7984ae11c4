"""What several leaders say of one message, as one document: each knows only its own partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.journey.key_elsewhere import seen_across


def joined(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combines the answers of several leaders: the newest message, all messages of a key, or the
    error common to all.
    """
    found = [answer for answer in answers if "error" not in answer]
    if found and "messages" in found[0]:
        return joined_lists(answers)
    if found:
        newest = max(found, key=newest_ms)
        document = {name: value for name, value in newest.items() if name != "elsewhere"}
        return with_key_elsewhere(document, answers)
    errors = [answer["error"] for answer in answers]
    first = next((error for error in errors if error["code"] != "not_leader"), errors[0])
    merged = dict(first)
    for name in ("partitions", "searched"):
        every = [one for error in errors for one in error.get(name, ())]
        if name in first:
            merged[name] = sorted(every, key=lambda one: one["partition"])
    return {"journey": answers[0]["journey"], "error": merged}


def with_key_elsewhere(
    document: dict[str, Any], answers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The document with what all leaders together say of its key in other partitions."""
    if document.get("key_elsewhere") is None:
        return document
    looked = [answer for answer in answers if has_looked(answer)]
    messages: list[dict[str, Any]] = []
    for answer in looked:
        if "error" not in answer:
            messages += [own_message(answer), *answer["key_elsewhere"]["messages"]]
    others = sorted(
        (one for one in messages if one["partition"] != document["partition"]),
        key=lambda one: one["partition"],
    )
    # What one leader does not have, another one may have searched.
    have_it = {one["partition"] for one in messages}
    left = set.intersection(*map(not_searched, looked)) - have_it
    removed = set[int]().union(*map(have_removed, looked)) - have_it
    for delivered in document["delivered"]:
        row = delivered["row"]
        if row is not None and (row["also_in"] or row["unless_in"]):
            also_in = [one["partition"] for one in others]
            delivered["row"] = seen_across(row, also_in, sorted(left | removed))
    found = {"messages": others, "not_searched": sorted(left), "removed": sorted(removed)}
    return document | {"key_elsewhere": found}


def has_looked(answer: dict[str, Any]) -> bool:
    """Whether this leader has looked for the key in its partitions."""
    if "error" in answer:
        return bool(answer["error"]["code"] == "key_not_found")
    return answer.get("key_elsewhere") is not None


def own_message(document: dict[str, Any]) -> dict[str, Any]:
    """The explained message as one of `key_elsewhere`."""
    return {
        "partition": document["partition"],
        "offset": document["offset"],
        "timestamp_ms": newest_ms(document),
        "why": document["partition_chosen"]["why"],
    }


def not_searched(answer: dict[str, Any]) -> set[int]:
    """The partitions in which this leader has not looked for the key, or not everywhere."""
    if "error" not in answer:
        return set(answer["key_elsewhere"]["not_searched"])
    searched = answer["error"].get("searched", ())
    left = {one["partition"] for one in searched if not one["whole"]}
    return left.union(answer.get("elsewhere", ()))


def have_removed(answer: dict[str, Any]) -> set[int]:
    """The partitions of this leader that have none of the key, and have had messages since removed.
    An earlier version does not say it.
    """
    if "error" not in answer:
        return set(answer["key_elsewhere"].get("removed", ()))
    searched = answer["error"].get("searched", ())
    return {one["partition"] for one in searched if one.get("has_removed")}


def joined_lists(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The lists of several leaders as one. `unanswered` has the partitions of which none spoke."""
    lists = [answer for answer in answers if "error" not in answer]
    # A leader without such messages answers with an error that says how far it searched.
    searched = [
        partition
        for answer in answers
        for partition in answer.get("error", answer).get("searched", ())
    ]
    known = {partition["partition"] for partition in searched}
    others = {index for answer in answers for index in answer.get("elsewhere", ())}
    return {
        "journey": lists[0]["journey"],
        "topic": lists[0]["topic"],
        "messages": sorted(
            (message for one in lists for message in one["messages"]),
            key=lambda message: (message["partition"], message["offset"]),
        ),
        "searched": sorted(searched, key=lambda partition: partition["partition"]),
        "unanswered": sorted(others - known),
    }


def newest_ms(document: dict[str, Any]) -> int:
    stamped = (document.get("published") or {}).get("timestamp_ms")
    return stamped if stamped is not None else -1
