"""The server's side of SASL mechanisms: bytes in, bytes out. No clock, socket or random inside."""
