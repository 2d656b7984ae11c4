"""The wire, pure: frames, codec, the table of request types and their versions, error codes."""
