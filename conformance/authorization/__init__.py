"""The same requests of clients with the same ACLs to Ottla and to Apache Kafka: the same codes."""
