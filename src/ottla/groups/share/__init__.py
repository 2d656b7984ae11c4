"""Share groups (KIP-932): members read the same partitions, and each record goes to one of them."""
