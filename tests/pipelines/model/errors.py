"""How a query ends, and what the model cannot do."""

from __future__ import annotations


class QueryFailedError(Exception):
    """Spark ends the query by itself."""


class NotUnderstoodError(BaseException):
    """The model lacks something: not an Exception, which a run would take for a failed batch."""
