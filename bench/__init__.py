"""`make bench`: measures Ottla and Apache Kafka in turn on one machine with the same clients."""
