"""Suite C: one file per family of Apache Kafka's tools. A test is a function that takes `Tools`."""
