"""Share groups' records (KIP-932): what the leader of a partition decides about who has which
record, and what the share coordinator stores of it. Pure."""
