from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError, RecordError


def test_each_error_has_kafkas_code() -> None:
    assert CorruptBatchError("x").code is ErrorCode.corrupt_message
    assert InvalidRecordError("x").code is ErrorCode.invalid_record
    late = InvalidRecordError("x", [RecordError(3, "late")], ErrorCode.invalid_timestamp)
    assert late.code is ErrorCode.invalid_timestamp
    assert late.record_errors == (RecordError(batch_index=3, message="late"),)
    assert isinstance(late, ApiError)
