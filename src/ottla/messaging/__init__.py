"""Reading and writing topics with librdkafka: what commands and pages share."""
