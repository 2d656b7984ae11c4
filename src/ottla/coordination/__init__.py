"""The coordination tree: small versioned nodes, on SQLite or on a ZooKeeper ensemble."""
