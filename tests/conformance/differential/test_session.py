"""Scripts run against a real broker, and give the same answers again."""

from __future__ import annotations

from conformance.differential.known import LATE_END
from conformance.differential.normal import differences
from conformance.differential.session import Session
from conformance.differential.walks import walk

from conformance.differential import scripts
from ottla.testing import SharedBroker


def answers(address: str, prefix: str, seed: int | None = None) -> list[tuple[str, object]]:
    session = Session(address, prefix)
    try:
        session.find_coordinators()
        if seed is None:
            scripts.a_transaction_of_version_2(session)
        else:
            walk(session, seed)
    finally:
        session.close()
    return [(each.label, each.content) for each in session.answers]


def test_the_answers_do_not_depend_on_names_and_ids(ottla_broker: SharedBroker) -> None:
    for seed in (None, 3):
        one = answers(ottla_broker.bootstrap, f"one{seed}", seed)
        other = answers(ottla_broker.bootstrap, f"other{seed}", seed)
        assert len(one) > 20
        assert [label for label, _ in one] == [label for label, _ in other]
        for (label, mine), (_, theirs) in zip(one, other, strict=True):
            assert differences(mine, theirs) == [], label


def test_only_an_end_of_the_epoch_before_an_older_end_is_called_late(
    ottla_broker: SharedBroker,
) -> None:
    session = Session(ottla_broker.bootstrap, "late")
    try:
        session.find_coordinators()
        scripts.end_late_after_an_older_end(session)
    finally:
        session.close()
    ends = [each for each in session.answers if each.label.startswith("EndTxn 5")]
    late = [each for each in ends if each.label.startswith(LATE_END)]
    assert len(ends) == 12, "of each of four transactions: before its end, after it, after an init"
    assert len(late) == 4
    assert {each.content["error_code"] for each in late} == {"producer_fenced"}
