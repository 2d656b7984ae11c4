"""Launchers of real components, such as Apache Kafka, PostgreSQL, HDFS, S3 and a schema registry.

`bench`, `conformance`, `demo`, `website` and the tests share them, and the cache of what they
fetch. `registry_server` launches nothing: it answers as a schema registry does, in this process.
"""
