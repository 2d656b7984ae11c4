"""The field `max_ahead` of `[sink]`. Pure."""

from __future__ import annotations

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.fields import Fields
from ottla.pipelines.sinks.far_ahead import read_length_s


def read_max_ahead(fields: Fields) -> str | None:
    """Return the length of time, None where the field is not given."""
    text = fields.text("max_ahead", "1 hour")
    if text is None:
        return None
    try:
        read_length_s(text)
    except PipelineError as error:
        fields.problem("max_ahead", str(error).removeprefix("max_ahead="))
    return text
