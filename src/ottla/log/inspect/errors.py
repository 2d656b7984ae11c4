"""Why a partition's folder cannot be read."""


class InspectError(Exception):
    """The text is one sentence. `hint` is what to do instead, if that is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
