"""A Spark session with Kafka and Delta: versions, Java, jars, settings, files of Spark's."""
