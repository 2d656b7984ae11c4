"""Repairs a segment: after a crash, or if its indexes do not match.

A crash may leave, in the last segments: half a batch at the end, bytes that never reached the disk
(zeros or old content), missing or torn index entries. The checksum of every batch from the recovery
point on is verified; the log ends before the first bad one. Indexes, leader epochs and producers
are rebuilt from the rest. An acknowledged record that reached the file is kept; a torn record is
never served.
"""

import os

from ottla.log.errors import storage_error
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.producer_state import ProducerState
from ottla.log.producers import note_marker
from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader, ensure_crc


def recover_segment(segment: Segment, state: ProducerState, epochs: LeaderEpochs) -> int:
    """Check all batches of the segment and truncate it at the first bad one; returns how many bytes
    were removed.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segment.reset_indexes()
    segment.reset_transaction_index()
    file = segment.file()
    size_bytes = os.fstat(file.fd).st_size
    valid_bytes, next_offset = 0, segment.base_offset
    try:
        for position, header, batch in scan_batches(file, 0, size_bytes):
            ensure_crc(header, batch)
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                break  # offsets never go back: this is old content of the disk blocks
            if header.next_offset - segment.base_offset > 2**31:
                break
            segment.index_batch(position, header)
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            _note(state, header, batch, segment)
            valid_bytes, next_offset = position + header.size_bytes, header.next_offset
    except CorruptBatchError:
        pass  # the first bad batch: the log ends before it
    segment.size_bytes = valid_bytes
    if valid_bytes < size_bytes:
        try:
            os.ftruncate(file.fd, valid_bytes)
        except OSError as error:
            raise storage_error(f"cannot truncate the torn end of {segment.path}", error) from None
    segment.store_indexes()
    state.end_offset = max(state.end_offset, next_offset)
    return size_bytes - valid_bytes


def _note(state: ProducerState, header: BatchHeader, batch: memoryview, segment: Segment) -> None:
    if header.producer_id < 0 or header.next_offset <= state.end_offset:
        return
    if not header.is_control:
        state.append(header)
        return
    try:
        note_marker(state, header, batch, segment)
    except InvalidRecordError:
        return  # its checksum is valid: another kind of control record
