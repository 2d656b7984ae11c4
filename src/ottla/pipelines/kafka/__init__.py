"""How pipelines reach Kafka: client settings, and look-ups on the brokers."""
