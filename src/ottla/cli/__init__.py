"""The command line: every command of `ottla`. All of them speak Kafka's wire protocol."""
