"""A schema registry of Confluent's REST interface, asked by pipelines and the command line."""
