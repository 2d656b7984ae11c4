"""Part D: the same requests to Ottla and to Apache Kafka; the answers are compared."""
