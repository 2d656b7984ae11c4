"""Record batches, pure: the header's view, records in and out, compression, and the checks on a
producer's batch."""
