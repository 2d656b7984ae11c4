"""One synchronous Kafka client: connecting, security, versions, look-up, retries.

`Client` finds the broker that can answer a request, and waits while Kafka says that it should be
asked again. What can be asked of a cluster lies in `admin`, one file per thing, with typed answers.
librdkafka (confluent-kafka) is for producing and consuming.
"""
