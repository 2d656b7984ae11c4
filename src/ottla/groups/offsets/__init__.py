"""The offsets that groups commit: commit, fetch, delete and expiry."""
