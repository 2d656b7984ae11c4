"""The refusal of every request type, in its first and last version."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import pytest

from ottla.protocol.codec import codec_of
from ottla.protocol.error_response import error_response, has_error_code
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_response
from ottla.protocol.messages import message_class, messages_of
from ottla.protocol.versions import APIS, INTERNAL, REFUSED_BELOW, WRITE_TXN_MARKERS

CODE = ErrorCode.request_timed_out
CREATE_TOPICS, DESCRIBE_LOG_DIRS = 19, 35


def sample(cls: Any) -> Any:
    """A message with one element in each array."""
    values = dict(codec_of(cls).defaults)
    for name, field in cls.__dataclass_fields__.items():
        for each in (field.type, *get_args(field.type)):
            if get_origin(each) is tuple:
                element = get_args(each)[0]
                if hasattr(element, "__version__"):
                    values[name] = (sample(element),)
                else:
                    values[name] = ("x",) if isinstance("x", element) else (1,)
    return codec_of(cls).cls(**values)


def codes(message: Any) -> list[ErrorCode]:
    found = []
    cls: Any = type(message)
    for name in codec_of(cls).defaults:
        value = getattr(message, name)
        if isinstance(value, ErrorCode):
            found.append(value)
        elif isinstance(value, tuple):
            found += [
                code for each in value if hasattr(each, "__version__") for code in codes(each)
            ]
    return found


@pytest.mark.full  # imports every message class
@pytest.mark.parametrize("is_last", [False, True])
def test_every_request_type_is_refused(is_last: bool) -> None:
    for api in APIS.values():
        if api.key in INTERNAL or api.key == WRITE_TXN_MARKERS:
            continue
        lowest = max(api.min_version, REFUSED_BELOW.get(api.key, 0))
        version = api.max_version if is_last else lowest
        request = sample(message_class(api.key, version, "request"))
        assert has_error_code(api.key, version), api
        parts = write_response(error_response(request, CODE), 5)
        frame = memoryview(b"".join(bytes(part) for part in parts))[4:]
        found = codes(read_response(api.key, version, frame)[1])
        if (api.key, version) == (DESCRIBE_LOG_DIRS, 1):
            # It has no error of its own, and clients take an empty list for a refusal.
            assert found == []
            continue
        assert found, api
        if api.key == CREATE_TOPICS:
            found = [each for each in found if each is not ErrorCode.none]  # that of the settings
        assert set(found) == {CODE}, api


def test_topics_partitions_and_members_are_those_of_the_request() -> None:
    build = messages_of(0, 9, "request")
    data = [build.PartitionProduceData(index=index, records=b"") for index in (2, 5)]
    topic = build.TopicProduceData(name="t", partition_data=tuple(data))
    response = error_response(build.ProduceRequest(acks=-1, topic_data=(topic,)), CODE)
    (answered,) = response.responses
    assert answered.name == "t"
    assert [each.index for each in answered.partition_responses] == [2, 5]
    build = messages_of(15, 5, "request")
    response = error_response(build.DescribeGroupsRequest(groups=("g", "h")), CODE)
    assert [each.group_id for each in response.groups] == ["g", "h"]
    build = messages_of(9, 1, "request")
    asked = build.OffsetFetchRequestTopic(name="t", partition_indexes=(3,))
    response = error_response(build.OffsetFetchRequest(group_id="g", topics=(asked,)), CODE)
    assert response.topics[0].partitions[0].partition_index == 3


def test_an_answer_with_an_error_of_its_own_lists_nothing_unless_it_is_a_part() -> None:
    build = messages_of(9, 5, "request")
    asked = build.OffsetFetchRequestTopic(name="t", partition_indexes=(3,))
    request = build.OffsetFetchRequest(group_id="g", topics=(asked,))
    assert error_response(request, CODE).error_code is CODE
    assert error_response(request, CODE).topics == ()
    assert error_response(request, CODE, is_part=True).topics[0].name == "t"


def test_refused_quotas_name_whom_they_are_for() -> None:
    build = messages_of(49, 1, "request")
    names = [
        build.EntityData(entity_type="user", entity_name="a"),
        build.EntityData(entity_type="client-id", entity_name=None),
    ]
    entry = build.EntryData(entity=tuple(names), ops=())
    response = error_response(build.AlterClientQuotasRequest(entries=(entry,)), CODE)
    (refused,) = response.entries
    assert refused.error_code is CODE
    assert [(each.entity_type, each.entity_name) for each in refused.entity] == [
        ("user", "a"),
        ("client-id", None),
    ]


def test_refused_passwords_name_their_users() -> None:
    build = messages_of(51, 0, "request")
    gone = build.ScramCredentialDeletion(name="a", mechanism=1)
    new = build.ScramCredentialUpsertion(name="b", mechanism=1)
    request = build.AlterUserScramCredentialsRequest(deletions=(gone,), upsertions=(new,))
    response = error_response(request, CODE)
    assert [(each.user, each.error_code) for each in response.results] == [("a", CODE), ("b", CODE)]
