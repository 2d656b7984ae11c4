"""Record batches, pure: header, reading and writing records, compression, and the checks on a
producer's batch."""
