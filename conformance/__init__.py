"""`make conformance`: runs public test suites of other clients and tools against one broker.

With `ARGS="--brokers 3"`, against a cluster whose topics have three replicas. sarama's suite always
has a cluster of its own.

This repository contains no part of the suites: their packages are fetched into the cache.
"""
