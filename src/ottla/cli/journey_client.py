"""Asks brokers for a journey: Ottla's own request, over a plain connection.

librdkafka cannot send unknown requests, so this module speaks Kafka's framing with request header
v1, followed by JSON. A broker that is not Ottla closes the connection.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from ottla.cli.client import connect
from ottla.cli.failures import Failed
from ottla.cli.plain_connection import connected
from ottla.cli.plain_frames import CORRELATION_BYTES, framed, received
from ottla.journey.key_elsewhere import seen_across
from ottla.protocol.versions import JOURNEY

ANSWER_TIMEOUT_S: Final = 30.0
"""A search for a key reads a few hundred MiB at most."""
SETTLE_S: Final = 5.0
"""How long to retry while leadership moves."""
SETTLE_PAUSE_S: Final = 0.2
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024

NO_OTTLA: Final = "Only Ottla brokers record the journeys of their messages."


def ask_journey(bootstrap: str, question: dict[str, Any]) -> dict[str, Any]:
    """The document from the partition's leader, whichever broker is asked first.

    Raises Failed if there is none.
    """
    answer = ask_broker(bootstrap, question)
    asked_at = time.monotonic()
    while is_elsewhere(answer):
        leaders = leader_addresses(bootstrap, question)
        answers = [ask_broker(address, question) for address in leaders]
        answer = joined(answers) if answers else answer
        if not answers or not is_led_by_another(answer):
            return answer
        # Leadership moved between the two requests.
        if time.monotonic() - asked_at > SETTLE_S:
            return answer
        time.sleep(SETTLE_PAUSE_S)
    return answer


def is_led_by_another(answer: dict[str, Any]) -> bool:
    return bool(answer.get("error", {}).get("code") == "not_leader")


def is_elsewhere(answer: dict[str, Any]) -> bool:
    """Whether other brokers must be asked, instead or as well."""
    return is_led_by_another(answer) or bool(answer.get("elsewhere"))


def leader_addresses(bootstrap: str, question: dict[str, Any]) -> list[str]:
    """The addresses of the leaders of the requested partitions; empty if there is none."""
    metadata = connect(bootstrap).metadata()
    topic, wanted = metadata.topics.get(question["topic"]), question.get("partition")
    partitions = topic.partitions if topic is not None else {}
    leaders = {
        partition.leader
        for index, partition in partitions.items()
        if wanted is None or index == wanted
    }
    found = [metadata.brokers[leader] for leader in sorted(leaders) if leader in metadata.brokers]
    return [f"{broker.host}:{broker.port}" for broker in found]


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
    left = set.intersection(*map(not_searched, looked)) - {one["partition"] for one in messages}
    for delivered in document["delivered"]:
        row = delivered["row"]
        if row is not None and (row["also_in"] or row["unless_in"]):
            also_in = [one["partition"] for one in others]
            delivered["row"] = seen_across(row, also_in, sorted(left))
    return document | {"key_elsewhere": {"messages": others, "not_searched": sorted(left)}}


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


def joined_lists(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The lists of several leaders as one. `unanswered` has the partitions of which none spoke."""
    lists = [answer for answer in answers if "error" not in answer]
    # A leader without such messages answers with an error that says how far it searched.
    places = [
        place for answer in answers for place in answer.get("error", answer).get("searched", ())
    ]
    known = {place["partition"] for place in places}
    others = {index for answer in answers for index in answer.get("elsewhere", ())}
    return {
        "journey": lists[0]["journey"],
        "topic": lists[0]["topic"],
        "messages": sorted(
            (message for one in lists for message in one["messages"]),
            key=lambda message: (message["partition"], message["offset"]),
        ),
        "searched": sorted(places, key=lambda place: place["partition"]),
        "unanswered": sorted(others - known),
    }


def newest_ms(document: dict[str, Any]) -> int:
    stamped = (document.get("published") or {}).get("timestamp_ms")
    return stamped if stamped is not None else -1


def ask_broker(bootstrap: str, question: dict[str, Any]) -> dict[str, Any]:
    """One broker's answer: from the first address that accepts a connection."""
    with connected(bootstrap, ANSWER_TIMEOUT_S) as connection:
        try:
            connection.sendall(framed(JOURNEY, json.dumps(question).encode()))
            body = received(connection, MAX_ANSWER_BYTES)[CORRELATION_BYTES:]
        except TimeoutError:
            raise Failed(
                f"no response from {bootstrap} within {ANSWER_TIMEOUT_S:g} s.", NO_OTTLA
            ) from None
        except (ConnectionError, EOFError):
            raise Failed(
                f"the server at {bootstrap} is not an Ottla broker: it closed the connection.",
                NO_OTTLA,
            ) from None
        except OSError as error:
            raise Failed(f"the connection to {bootstrap} broke: {error.strerror}.") from None
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "journey" not in document:
        raise Failed(f"the server at {bootstrap} is not an Ottla broker.", NO_OTTLA)
    return document
