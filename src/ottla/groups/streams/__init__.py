"""Streams groups (KIP-1071): the instances of a Kafka Streams application share its tasks.

A member's heartbeat brings the application's topology once. The group knows from it, and from the
topics of the cluster, which tasks there are and which internal topics are missing (`topology`,
`configured`), says who has which task (`sticky`, `target`), and leads members there step by step
(`reconcile`). Kafka's counterparts are in org.apache.kafka.coordinator.group.streams.
"""
