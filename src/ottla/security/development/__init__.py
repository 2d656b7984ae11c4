"""Certificates, passwords and settings for development: a small authority of one's own.

Needs the package `cryptography` (extra `secure`) to make certificates; what was made is used
without it.
"""
