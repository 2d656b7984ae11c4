import pytest
from conformance.log_dump import faults_in

CLEAN = """Dumping /d/t-0/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 9 count: 10 magic: 2 compresscodec: none crc: 1 isvalid: true
| offset: 0 CreateTime: 1 keySize: -1 valueSize: 3 sequence: -1 headerKeys: []
/d/t-0/00000000000000000000.index passed sanity check.
"""


def test_a_clean_dump_has_no_fault() -> None:
    assert faults_in(CLEAN) == []


def test_the_false_alarm_of_a_later_segment_is_passed_over() -> None:
    assert faults_in(CLEAN + "Non-consecutive offsets in /d/5.log\n  -1 is followed by 5\n") == []


@pytest.mark.parametrize(
    "fault",
    [
        "baseOffset: 0 lastOffset: 9 crc: 1 isvalid: false",
        "Found 12 invalid bytes at the end of 00000000000000000000.log",
        "Mismatches in :/d/t-0/0.index\n  Index offset: 5, log offset: 7",
        "Non-consecutive offsets in /d/0.log\n  3 is followed by 7",
        "Found timestamp mismatch in :/d/t-0/0.timeindex\n  Index timestamp: 0, log timestamp: 5",
        "The following indexed offsets are not found in the log.\nIndexed offset: 0, found log "
        "offset: 3",
        "org.apache.kafka.storage.internals.log.CorruptIndexException: Corrupt index found",
    ],
)
def test_each_kind_of_fault_is_seen(fault: str) -> None:
    found = faults_in(CLEAN + fault)
    assert len(found) == 1
    assert fault.splitlines()[-1].strip() in found[0]
