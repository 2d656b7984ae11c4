"""AlterClientQuotas, and DescribeClientQuotas, which shows what was altered."""

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

DESCRIBE, ALTER = 48, 49
VERSIONS = pytest.mark.parametrize("version", [0, 1])


Entry = tuple[Mapping[str, str | None], Mapping[str, float | None]]


async def alter(cluster: Any, version: int, *entries: Entry) -> list[ErrorCode]:
    build = cluster.request(ALTER, version)
    answer = await cluster.ask(
        build.AlterClientQuotasRequest(
            entries=tuple(
                build.EntryData(
                    entity=tuple(
                        build.EntityData(entity_type=type, entity_name=name)
                        for type, name in names.items()
                    ),
                    ops=tuple(
                        build.OpData(key=key, value=value or 0, remove=value is None)
                        for key, value in values.items()
                    ),
                )
                for names, values in entries
            )
        )
    )
    assert [
        {each.entity_type: each.entity_name for each in entry.entity} for entry in answer.entries
    ] == [names for names, _ in entries]
    return [each.error_code for each in answer.entries]


async def describe(
    cluster: Any, version: int, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:
    build = cluster.request(DESCRIBE, version)
    answer = await cluster.ask(
        build.DescribeClientQuotasRequest(
            components=tuple(
                build.ComponentData(entity_type=type, match_type=match, match=name)
                for type, match, name in components
            ),
            strict=strict,
        )
    )
    if answer.error_code is not ErrorCode.none:
        assert answer.entries is None
        return answer.error_code
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries
    ]


@VERSIONS
async def test_quotas_come_and_go(cluster: Any, version: int) -> None:
    assert await describe(cluster, version) == []
    user = ({"user": "a"}, {"producer_byte_rate": 5.0, "request_percentage": 12.5})
    both = ({"user": None, "client-id": "c"}, {"controller_mutation_rate": 0.5})
    address = ({"ip": None}, {"connection_creation_rate": 3.0})
    assert await alter(cluster, version, user, both, address) == [ErrorCode.none] * 3
    assert await describe(cluster, version) == [user, both, address]
    assert await describe(cluster, version, ("user", 1, None)) == [both]
    assert await describe(cluster, version, ("user", 0, "a"), strict=True) == [user]
    await alter(cluster, version, ({"user": "a"}, {"request_percentage": None}), both)
    await alter(cluster, version, ({"ip": None}, {"connection_creation_rate": None}))
    assert await describe(cluster, version) == [
        ({"user": "a"}, {"producer_byte_rate": 5.0}),
        both,
    ]


@VERSIONS
async def test_what_is_wrong_is_refused(cluster: Any, version: int) -> None:
    wrong = ({"user": "a"}, {"producer_byte_rate": 0.0})
    right = ({"user": "b"}, {"producer_byte_rate": 1.0})
    codes = await alter(cluster, version, wrong, right)
    assert codes == [ErrorCode.invalid_request, ErrorCode.none]
    assert await describe(cluster, version, ("user", 0, None)) is ErrorCode.invalid_request
    assert await describe(cluster, version, ("group", 2, None)) is ErrorCode.unsupported_version
