"""What of two answers is compared."""

from conformance.authorization.asked import all_codes, shown
from conformance.authorization.known import KNOWN, Known
from conformance.authorization.situations import FOR_EVERYONE, RESOURCES, SITUATIONS
from conformance.authorization.suite import differences, names

from ottla.protocol.access import OPERATIONS_OF
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

DENIED = ErrorCode.topic_authorization_failed


def metadata(*topics: tuple[str, ErrorCode]) -> object:
    build = messages_of(3, 12)
    return build.MetadataResponse(
        topics=tuple(
            build.MetadataResponseTopic(error_code=code, name=name, topic_authorized_operations=8)
            for name, code in topics
        )
    )


def test_codes_operations_and_names_are_shown() -> None:
    answer = metadata(("s1-t", ErrorCode.none), ("s2-t", DENIED), ("other", DENIED))
    assert shown(answer, "s1") == {
        "topics[t]": ["is there"],
        "topics[t].error_code": ["none"],
        "topics[t].topic_authorized_operations": ["8"],
        "topics[other]": ["is there"],
        "topics[other].error_code": ["topic_authorization_failed"],
        "topics[other].topic_authorized_operations": ["8"],
    }
    assert all_codes(answer) == {ErrorCode.none, DENIED}


def test_a_difference_is_found_and_a_known_one_is_noted() -> None:
    seen: set[Known] = set()
    label = "list_partition_reassignments 0"
    ours = {label: {"error_code": ["none"]}}
    theirs = {label: {"error_code": ["none"], "topics[t]": ["is there"]}}
    assert differences("no ACL", ours, theirs, seen) == []
    assert [each.label for each in seen] == [label]
    ours = {"fetch 12": {"error_code": ["none"]}}
    theirs = {"fetch 12": {"error_code": ["topic_authorization_failed"]}}
    found = differences("no ACL", ours, theirs, seen)
    assert found == ["fetch 12: error_code: none, topic_authorization_failed"]


def test_each_operation_is_allowed_alone_and_denied_alone() -> None:
    for resource in RESOURCES:
        for operation in OPERATIONS_OF[resource]:
            assert f"only {operation.name} on {resource.name}" in names()
            assert f"all but {operation.name} on {resource.name}" in names()
    assert len(set(names())) == len(SITUATIONS) + len(FOR_EVERYONE)
    assert all(each.situation in ("", *names()) for each in KNOWN)
