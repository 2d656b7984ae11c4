"""A known difference explains one field of one kind of request."""

from conformance.differential.known import KNOWN, Known


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
