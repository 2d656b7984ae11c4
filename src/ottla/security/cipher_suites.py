"""Names of cipher suites: the standard's, which Java and Kafka use, and OpenSSL's.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256    ECDHE-RSA-AES128-GCM-SHA256

TLS 1.3 has suites of its own, which its names show: they have no WITH. OpenSSL enables all of them
whenever it enables TLS 1.3, and Python cannot choose among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WITH: Final = "_WITH_"
_SIZED: Final = re.compile(r"(AES|CAMELLIA|ARIA)_(128|256)")


def is_of_tls_1_3(name: str) -> bool:
    return name.startswith("TLS_") and _WITH not in name


def ciphers_of(names: Iterable[str]) -> list[str]:
    """OpenSSL's names of those that are older than TLS 1.3."""
    return [_openssl_name(name) for name in names if not is_of_tls_1_3(name)]


def _openssl_name(name: str) -> str:
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition(_WITH)
    cipher = _SIZED.sub(r"\1\2", cipher).replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305")
    cipher = cipher.replace("_CBC", "").replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"
