"""A known difference explains one field of one kind of request."""

from conformance.differential.known import KNOWN, LATE_END, Known


def test_it_explains_its_own_field_only() -> None:
    known = Known("Produce ", "log_start_offset", "why")
    assert known.explains("a", "Produce 12 t to a-0", "responses[0].log_start_offset: 0, -1")
    assert not known.explains(
        "a", "Produce 12 t to a-0", "responses[0].error_code: log_start_offset, 1"
    )
    elsewhere = known._replace(script="b")
    assert not elsewhere.explains("a", "Produce 12", "responses[0].log_start_offset: 0, -1")
    assert elsewhere.explains("b", "Produce 12", "responses[0].log_start_offset: 0, -1")
    assert not known.explains("a", "Fetch 12 a-0", "responses[0].log_start_offset: 0, -1")


def test_every_entry_has_a_reason() -> None:
    assert all(len(each.reason) > 40 for each in KNOWN)


def explained(label: str, difference: str) -> bool:
    return any(each.explains("walk_1011", label, difference) for each in KNOWN)


def test_a_late_end_may_be_fenced_here_and_taken_for_a_repeated_one_there_and_nothing_else() -> (
    None
):
    late = f"{LATE_END}commits t1"
    for allowed in (
        "error_code: 'producer_fenced', 'none'",
        "error_code: 'producer_fenced', 'invalid_txn_state'",
        "producer_id: '-1', 'P12'",
        "producer_epoch: -1, 3",
    ):
        assert explained(late, allowed)
        assert not explained("EndTxn 5 commits t1", allowed)
        assert not explained("EndTxn 3 commits t1", allowed)
    for refused in (
        "error_code: 'none', 'producer_fenced'",
        "error_code: 'producer_fenced', 'invalid_producer_epoch'",
        "error_code: 'invalid_txn_state', 'none'",
        "producer_id: 'P1', 'P2'",
        "producer_epoch: 2, 3",
    ):
        assert not explained(late, refused)
