"""When watching a message ends, and what is shown meanwhile."""

from typing import Any

import pytest

from ottla.cli.failures import Failed
from ottla.cli.journey.watch import watch_until_read
from ottla.journey.outcome import Outcome, outcome_of

Document = dict[str, Any]


def document(state: str = "stored", asked: str | None = None, **groups: str) -> Document:
    read = [{"group": name, "state": state} for name, state in groups.items()]
    found: Document = {"state": state, "read": read, "asked_ms": 5}
    if asked is not None:
        found["asked_group"] = {"group": "g", "state": asked, "reasons": []}
    return found


@pytest.mark.parametrize(
    ("found", "group", "outcome"),
    [
        (document("not_yet_written"), None, Outcome.WAITING),
        (document(), None, Outcome.WAITING),
        (document(a="read", b="not_yet"), None, Outcome.WAITING),
        (document(a="read", b="set_back"), None, Outcome.WAITING),
        (document(a="read", b="not_known"), None, Outcome.READ),
        (document("removed", a="read", b="missed"), None, Outcome.READ),
        (document("removed", a="missed"), None, Outcome.NEVER),
        (document("removed"), None, Outcome.NEVER),
        (document("compacted", a="not_yet"), None, Outcome.NEVER),
        (document(asked="no_offset", a="read"), "g", Outcome.WAITING),
        (document(asked="unknown"), "g", Outcome.WAITING),
        (document(asked="read", a="not_yet"), "g", Outcome.READ),
        (document("removed", asked="no_offset", a="read"), "g", Outcome.NEVER),
        (document("removed", asked="missed", a="read"), "g", Outcome.NEVER),
    ],
)
def test_what_watching_has_come_to(found: Document, group: str | None, outcome: Outcome) -> None:
    assert outcome_of(found, group) is outcome


def test_each_change_is_shown_until_all_have_read_it() -> None:
    answers = [
        document(a="not_yet") | {"asked_ms": 6},
        document(a="not_yet", b="read"),
        document(a="read", b="read"),
    ]
    rest = iter(answers)
    shown: list[Document] = []
    watch_until_read(document(a="not_yet"), lambda: next(rest), shown.append, None, 0)
    assert shown == [document(a="not_yet"), *answers[1:]], "another time alone is no change"
    assert next(rest, None) is None


def test_a_message_that_is_read_already_is_not_asked_for_again() -> None:
    shown: list[Document] = []
    watch_until_read(document(a="read"), lambda: pytest.fail("asked again"), shown.append, None, 0)
    assert shown == [document(a="read")]


@pytest.mark.parametrize(
    ("group", "said"), [(None, "before a group read it"), ("g", "before group 'g' read it")]
)
def test_a_message_that_was_removed_is_a_failure(group: str | None, said: str) -> None:
    gone = document("removed", asked="no_offset", a="missed")
    shown: list[Document] = []
    with pytest.raises(Failed, match=said):
        watch_until_read(
            document(asked="not_yet", a="not_yet"), lambda: gone, shown.append, group, 0
        )
    assert shown[-1] == gone
