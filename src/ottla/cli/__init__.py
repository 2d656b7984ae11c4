"""The command line: every command of `ottla`, on Kafka's wire protocol."""
