"""One partition on disk, in Kafka's file formats, and the data folder that holds them all."""
