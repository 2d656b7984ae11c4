"""A known difference explains what it is for, and has a reason."""

from conformance.authorization.known import KNOWN, Known

NETWORK = "from this network"


def test_it_explains_its_own_difference_only() -> None:
    known = Known(r"fetch \d+", r"error_code: .*, none", "why")
    assert known.explains("no ACL", "fetch 12", "error_code: a, none")
    assert not known.explains("no ACL", "fetch 12 as a follower", "error_code: a, none")
    assert not known.explains("no ACL", "fetch 12", "topics[t].error_code: a, none")
    here = known._replace(situation=NETWORK)
    assert here.explains(NETWORK, "fetch 12", "error_code: a, none")
    assert not here.explains("no ACL", "fetch 12", "error_code: a, none")


def test_every_entry_has_a_reason() -> None:
    assert all(len(each.reason) > 40 for each in KNOWN)


def test_no_entry_explains_more_than_ottla_refuses() -> None:
    """Where Ottla would allow what Apache Kafka refuses, no entry may say so."""
    allowed = ("none", "is there")
    refused = ("cluster_authorization_failed", "topic_authorization_failed")
    for label in (
        "fetch 12",
        "fetch 12 as a follower",
        "produce 9",
        "write_txn_markers 2 of a commit",
    ):
        for ours in allowed:
            for theirs in refused:
                difference = f"topics[t].error_code: {ours}, {theirs}"
                explained = [each for each in KNOWN if each.explains("no ACL", label, difference)]
                assert explained == []
