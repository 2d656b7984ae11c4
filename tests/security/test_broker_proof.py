import pytest

from ottla.security.broker_proof import Meeting, Role, is_proven, proof

SECRET = bytes(range(32))
MEETING = Meeting(1, 2, b"a" * 16, b"b" * 16)


def test_a_proof_is_that_of_the_same_secret_role_and_meeting() -> None:
    assert is_proven(SECRET, Role.CONNECTED, MEETING, proof(SECRET, Role.CONNECTED, MEETING))


@pytest.mark.parametrize(
    ("secret", "role", "meeting"),
    [
        (bytes(32), Role.CONNECTED, MEETING),
        (SECRET, Role.ACCEPTED, MEETING),
        (SECRET, Role.CONNECTED, MEETING._replace(connected_id=3)),
        (SECRET, Role.CONNECTED, MEETING._replace(accepted_id=3)),
        (SECRET, Role.CONNECTED, MEETING._replace(connected_nonce=b"c" * 16)),
        (SECRET, Role.CONNECTED, MEETING._replace(accepted_nonce=b"c" * 16)),
        (SECRET, Role.CONNECTED, Meeting(1, 2, b"a" * 15, b"a" + b"b" * 16)),
    ],
)
def test_a_proof_for_something_else_proves_nothing(
    secret: bytes, role: Role, meeting: Meeting
) -> None:
    assert not is_proven(SECRET, Role.CONNECTED, MEETING, proof(secret, role, meeting))


@pytest.mark.parametrize("sent", [b"", b"x", bytes(32), bytes(1000)])
def test_other_bytes_prove_nothing(sent: bytes) -> None:
    assert not is_proven(SECRET, Role.CONNECTED, MEETING, sent)
