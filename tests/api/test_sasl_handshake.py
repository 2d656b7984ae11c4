from typing import Any

from ottla.protocol.errors import ErrorCode

KEY = 17


async def test_a_plaintext_listener_has_no_handshake(cluster: Any) -> None:
    """KafkaApis.handleSaslHandshakeRequest: clients learn that they need none."""
    for version in (0, 1):
        build = cluster.request(KEY, version)
        answer = await cluster.ask(build.SaslHandshakeRequest(mechanism="PLAIN"))
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.illegal_sasl_state, ())
