"""The transaction coordinator's decisions (KIP-98, KIP-360, KIP-890). Pure."""
