"""Suite C, one file a family of Apache Kafka's tools. A test is a function that takes `Tools`."""
