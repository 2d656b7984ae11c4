"""The settings of a session and those of the checkpoint which it continues, compared."""

from __future__ import annotations

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.checkpoint.value_settings import wrong_settings
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.specification import Specification


def check_settings(specification: Specification, identity: Identity | None) -> None:
    """Refuse a checkpoint whose rows were made by other settings."""
    path = str(specification.checkpoint)
    if wrong := wrong_settings(identity, path, specification.value_settings):
        raise PipelineError(wrong)
