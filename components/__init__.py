"""Launchers of real components, such as Apache Kafka, PostgreSQL, HDFS, S3 and a schema registry.

`bench`, `conformance`, `demo` and the tests share them, and the cache of what they fetch.
"""
