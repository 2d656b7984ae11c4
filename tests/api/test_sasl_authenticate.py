from typing import Any

from ottla.protocol.errors import ErrorCode

KEY = 36


async def test_a_plaintext_listener_has_no_authentication(cluster: Any) -> None:
    for version in (0, 1, 2):
        build = cluster.request(KEY, version)
        answer = await cluster.ask(build.SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"))
        assert answer.error_code is ErrorCode.illegal_sasl_state
        assert answer.error_message == (
            "SaslAuthenticate request received after successful authentication"
        )
        assert answer.auth_bytes == b""
