"""The wire protocol, pure: frames, codec, the request types and their versions, error codes."""
