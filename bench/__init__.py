"""`make bench`: Ottla and Apache Kafka in turn, on one machine, same clients, same settings."""
