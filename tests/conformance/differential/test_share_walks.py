"""Walks of share groups ask what has one answer."""

from __future__ import annotations

from conformance.differential.normal import differences
from conformance.differential.session import Session
from conformance.differential.share_member_walks import TOPICS, walk
from conformance.differential.share_walks import without_releases
from conformance.differential.sharing import ACCEPT, GAP, REJECT, RELEASE

from ottla.testing import SharedBroker


def test_a_fetch_does_not_release() -> None:
    acks = [(0, 0, RELEASE), (1, 3, ACCEPT, RELEASE, REJECT), (4, 5, GAP), (7, 7, 7)]
    assert without_releases(acks) == [
        (0, 0, ACCEPT),
        (1, 3, ACCEPT, ACCEPT, REJECT),
        (4, 5, GAP),
        (7, 7, 7),
    ]


def test_members_get_the_same_answers_again(ottla_broker: SharedBroker) -> None:
    found = []
    for prefix in ("one", "other"):
        session = Session(ottla_broker.bootstrap, f"members-{prefix}")
        try:
            session.find_coordinators()
            for topic in TOPICS:
                session.create(topic, 1)
            walk(session, 3)
        finally:
            session.close()
        found.append(session.answers)
    one, other = found
    assert len(one) > 30
    assert [each.label for each in one] == [each.label for each in other]
    for mine, theirs in zip(one, other, strict=True):
        assert differences(mine.content, theirs.content) == [], mine.label
