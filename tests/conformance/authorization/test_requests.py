"""Every advertised request is there, and can be written in each version that is asked."""

from uuid import UUID

from conformance.authorization.given import TOPICS, Given
from conformance.authorization.requests import KINDS, requests_of, versions_of

from ottla.api.table import ADVERTISED
from ottla.protocol.frames import write_request

GIVEN = Given("s1", {f"s1-{word}": UUID(int=number) for number, word in enumerate(TOPICS, 1)})


def test_every_advertised_request_is_compared() -> None:
    assert {key for key, _, _ in ADVERTISED} == {kind.key for kind in KINDS}


def test_every_kind_can_be_written() -> None:
    labels = []
    for label, request in requests_of(GIVEN, every=False):
        assert write_request(request, 1, "tests"), label
        labels.append(label)
    assert len(labels) == len(set(labels))


def test_versions() -> None:
    first = next(kind for kind in KINDS if kind.key == 0)
    assert versions_of(first, every=False) == (3, 13)
    assert versions_of(first, every=True) == tuple(range(3, 14))
