"""The table of request types is in order, and kio has messages for every version in it."""

from __future__ import annotations

import pytest

from ottla.protocol.messages import message_module
from ottla.protocol.versions import (
    APIS,
    FOR_CONTROLLER,
    INTERNAL,
    JOURNEY,
    JOURNEY_GROUPS,
    METADATA_DELTAS,
    REFUSED_BELOW,
    Api,
)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_has_messages(api: Api) -> None:
    assert 0 <= api.min_version <= api.max_version
    for version in (REFUSED_BELOW.get(api.key, api.min_version), api.max_version):
        for kind in ("request", "response"):
            assert message_module(api.key, version, kind).__name__.endswith(kind)


def test_names_and_keys_are_unique() -> None:
    assert len({api.name for api in APIS.values()}) == len(APIS)
    assert all(key == api.key for key, api in APIS.items())


def test_ottlas_own_requests_are_outside_of_kafkas_range() -> None:
    assert not {JOURNEY, JOURNEY_GROUPS, METADATA_DELTAS} & APIS.keys()
    assert max(APIS) < 1_000 < min(JOURNEY, JOURNEY_GROUPS, METADATA_DELTAS)


def test_what_is_forwarded_or_refused_exists() -> None:
    assert APIS.keys() >= (FOR_CONTROLLER | INTERNAL | REFUSED_BELOW.keys())
    for key, first in REFUSED_BELOW.items():
        assert APIS[key].min_version < first <= APIS[key].max_version
