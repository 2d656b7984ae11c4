"""A schema registry: its client, its schemas, how data is framed by them, and Protobuf as JSON.

Pipelines and the command line share it.
"""
