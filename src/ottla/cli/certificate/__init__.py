"""Make an authority and certificates for development, and show any certificate."""

FIRST = ("authority", "broker", "client", "show")
