"""Records as text: what `ottla produce` and `ottla consume` read and write. No command is here."""
