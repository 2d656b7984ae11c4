"""The running node: server, connections, partitions, the coordinators' runtime, clock, wiring."""
