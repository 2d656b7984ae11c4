"""The Kafka source of a pipeline: `topic`, `rejected`, parsing, starting positions."""
