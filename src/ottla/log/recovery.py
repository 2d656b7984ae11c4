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
from ottla.log.recovery_cut import Cut
from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader, ensure_crc


def recover_segment(segment: Segment, state: ProducerState, epochs: LeaderEpochs) -> Cut | None:
    """Check all batches of the segment, and rebuild what belongs to them. Returns where the sound
    ones end if anything follows: `end_segment` removes that.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segment.reset_indexes()
    segment.reset_transaction_index()
    file = segment.file()
    size_bytes = os.fstat(file.fd).st_size
    valid_bytes, next_offset = 0, segment.base_offset
    epoch, until_offset = -1, -1
    reason = "half a batch"
    try:
        for position, header, batch in scan_batches(file, 0, size_bytes):
            ensure_crc(header, batch)
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                # Offsets never go back: this is old content of the disk blocks.
                reason = f"offset {header.base_offset} where {next_offset} is next"
                break
            if header.next_offset - segment.base_offset > 2**31:
                reason = f"offset {header.base_offset}, too far from the segment's first"
                break
            segment.index_batch(position, header)
            if header.leader_epoch != epoch or header.base_offset >= until_offset:
                epoch = header.leader_epoch
                until_offset = epochs.restore(epoch, header.base_offset)
            _note(state, header, batch, segment)
            valid_bytes, next_offset = position + header.size_bytes, header.next_offset
    except CorruptBatchError as error:
        reason = str(error)
    segment.size_bytes = size_bytes
    segment.store_indexes()
    state.end_offset = max(state.end_offset, next_offset)
    if valid_bytes == size_bytes:
        return None
    return Cut(valid_bytes, next_offset, size_bytes - valid_bytes, reason)


def end_segment(segment: Segment, cut: Cut) -> None:
    """Truncate the segment. Raises ApiError KAFKA_STORAGE_ERROR."""
    segment.size_bytes = cut.position
    try:
        os.ftruncate(segment.file().fd, cut.position)
    except OSError as error:
        raise storage_error(f"cannot truncate the torn end of {segment.path}", error) from None


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
