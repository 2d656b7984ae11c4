import pytest

from ottla.protocol.messages import message_class, messages_of


def test_a_field_that_the_version_lacks_is_dropped() -> None:
    old = messages_of(0, 3).PartitionProduceResponse(index=1, base_offset=2, error_message="no")
    new = messages_of(0, 8).PartitionProduceResponse(index=1, base_offset=2, error_message="no")
    assert not hasattr(old, "error_message")
    assert new.error_message == "no"


def test_a_field_of_no_version_is_an_assertion() -> None:
    with pytest.raises(AssertionError, match="eror_code"):
        messages_of(12, 0).HeartbeatResponse(eror_code=0)


def test_a_struct_of_no_version_is_an_assertion() -> None:
    with pytest.raises(AssertionError, match="HartbeatResponse"):
        messages_of(12, 0).HartbeatResponse()


def test_a_struct_of_other_versions_only_is_dropped() -> None:
    assert messages_of(1, 4).EpochEndOffset(epoch=1, end_offset=2) is None


def test_missing_fields_get_zero_values() -> None:
    response = messages_of(3, 12).MetadataResponse()
    assert response.brokers == ()
    assert response.cluster_id is None
    assert response.throttle_time == 0


def test_class_of_a_message() -> None:
    assert message_class(1, 12, "request").__name__ == "FetchRequest"
