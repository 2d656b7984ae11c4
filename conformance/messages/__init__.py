"""Apache Kafka's message definitions, beside Ottla's versions of them."""
