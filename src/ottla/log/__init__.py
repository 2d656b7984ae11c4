"""One partition on disk, in Kafka's file formats."""
