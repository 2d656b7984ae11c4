"""The log directories of two brokers, as they describe them."""

from ottla.client.admin.log_dirs import LogDir, StoredReplica

FOLDERS = [
    LogDir(
        1,
        "/a",
        None,
        10**12,
        4 * 10**11,
        (StoredReplica("small", 0, 10, 0, False), StoredReplica("big", 0, 2_500_000, 0, False)),
    ),
    LogDir(2, "/b", "kafka storage error", None, None, ()),
    LogDir(2, "/c", None, None, None, (StoredReplica("big", 0, 2_400_000, 7, True),)),
]
