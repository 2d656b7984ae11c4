from ottla.log.errors import storage_error
from ottla.protocol.errors import ErrorCode


def test_a_disks_fault_is_one_line_with_its_reason() -> None:
    error = storage_error("cannot write /data/t-0/0.log", OSError(28, "No space left on device"))
    assert error.code is ErrorCode.kafka_storage_error
    assert str(error) == "cannot write /data/t-0/0.log: No space left on device"
