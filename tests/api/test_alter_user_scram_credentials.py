"""Together with DescribeUserScramCredentials, which shows what was altered."""

from typing import Any

from ottla.protocol.errors import ErrorCode

ALTER, DESCRIBE = 51, 50


async def alter(cluster: Any, *upsertions: tuple[str, int], deletions: tuple[Any, ...] = ()) -> Any:
    build = cluster.request(ALTER, 0)
    request = build.AlterUserScramCredentialsRequest(
        deletions=tuple(
            build.ScramCredentialDeletion(name=name, mechanism=mechanism)
            for name, mechanism in deletions
        ),
        upsertions=tuple(
            build.ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=5000, salt=b"s", salted_password=b"p"
            )
            for name, mechanism in upsertions
        ),
    )
    answer = await cluster.ask(request)
    return {each.user: (each.error_code, each.error_message) for each in answer.results}


async def describe(cluster: Any, *users: str) -> Any:
    build = cluster.request(DESCRIBE, 0)
    named = tuple(build.UserName(name=user) for user in users) if users else None
    answer = await cluster.ask(build.DescribeUserScramCredentialsRequest(users=named))
    assert answer.error_code is ErrorCode.none
    return {
        each.user: (
            each.error_code,
            {info.mechanism: info.iterations for info in each.credential_infos},
        )
        for each in answer.results
    }


async def test_users_come_and_go(cluster: Any) -> None:
    assert await describe(cluster) == {}
    done = (ErrorCode.none, None)
    assert await alter(cluster, ("a", 1), ("b", 2)) == {"a": done, "b": done}
    assert await alter(cluster, ("a", 2)) == {"a": done}
    both = (ErrorCode.none, {1: 5000, 2: 5000})
    assert await describe(cluster) == {"a": both, "b": (ErrorCode.none, {2: 5000})}
    assert await describe(cluster, "a") == {"a": both}
    assert await alter(cluster, deletions=(("b", 2),)) == {"b": done}
    assert await describe(cluster) == {"a": both}


async def test_errors_are_of_each_user(cluster: Any) -> None:
    answers = await alter(cluster, ("", 1), ("a", 1), deletions=(("b", 1),))
    assert {user: code for user, (code, _) in answers.items()} == {
        "": ErrorCode.unacceptable_credential,
        "a": ErrorCode.none,
        "b": ErrorCode.resource_not_found,
    }
    found = await describe(cluster, "a", "c", "c", "d")
    assert found == {
        "a": (ErrorCode.none, {1: 5000}),
        "c": (ErrorCode.duplicate_resource, {}),
        "d": (ErrorCode.resource_not_found, {}),
    }
