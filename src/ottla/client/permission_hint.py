"""Which permission a request lacked, and the command that gives it."""

from __future__ import annotations

from collections.abc import Sequence


def permission_hint(principal: str | None, lacking: Sequence[str] | None) -> str | None:
    """A sentence; None if nothing is lacking. `lacking` as of RefusedError, `principal` as of
    Client.
    """
    if lacking is None:
        return None
    # Imported late: only a refusal needs it.
    import shlex

    operation, kind, *name = lacking
    words = shlex.join([principal or "PRINCIPAL", operation, kind, *name])
    who = principal or "this client"
    on = " ".join(["the cluster"] if kind == "cluster" else [kind, *name])
    return f"{who} lacks {operation} on {on}. As an administrator: ottla acl add {words}"
