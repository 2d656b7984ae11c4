"""`package`: a pipeline file as a job for AWS Glue, in a folder that is uploaded to S3."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.read import read_file
from ottla.pipelines.glue import wheel
from ottla.pipelines.glue.definition import KAFKA_JARS, check_version, jar_path, job_definition
from ottla.pipelines.spec.pipeline import FileSpec

LOCATION: Final = "s3://YOUR-BUCKET/ottla"
ROLE: Final = "YOUR-GLUE-ROLE"
_SCRIPT: Final = '''"""Runs {file} on AWS Glue {version}. Made by `ottla pipeline package`."""

from ottla.pipelines.glue.job import run

run(__file__, {file!r})
'''
# Glue's sessions have these from Glue; a job that sets them differs from what was tested.
_OF_GLUE: Final = ("master", "packages", "jars", "ivy_settings")


@dataclass(frozen=True, slots=True)
class Package:
    """What was written. `notices` say in one line each what to look at before the upload."""

    folder: Path
    script: Path
    wheel: Path
    definition: Path
    jars: Path  # the list of the Kafka source's jars, as Maven paths
    notices: tuple[str, ...]


def package(
    file: Path,
    folder: Path,
    version: str,
    *,
    location: str = LOCATION,
    role: str = ROLE,
    environ: Mapping[str, str] = os.environ,
) -> Package:
    """Write a job for AWS Glue into a folder, which is made.

    Args:
        file: the pipeline file (TOML or Python).
        folder: gets script, wheel, job definition (`job.json`, the arguments of CreateJob), the
            pipeline file with its functions, and `jars.txt`.
        version: AWS Glue's, "6.0".
        location: the folder in S3 that this one is uploaded to.
        role: the name or ARN of the IAM role that runs the job.

    Raises:
        PipelineError: a file with problems, a version that is not supported, or a folder that
            cannot be written.
    """
    check_version(version)
    if not location.startswith(("s3://", "s3a://")):
        raise PipelineError(f"location={location!r}: write a folder in S3, such as {LOCATION}")
    spec = read_file(file, environ)
    files = [spec.file, *_functions(spec)]
    script = f"{spec.file.stem}_glue.py"
    is_stream = not all(_ends(one.delivery.trigger) for one in spec.pipelines)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = wheel.write(folder)
        definition = job_definition(
            spec.file.stem,
            version=version,
            location=location,
            role=role,
            script=script,
            wheel=made.name,
            files=[one.name for one in files],
            settings=dict(spec.spark.conf),
            is_stream=is_stream,
        )
        for one in files:
            if one.parent != folder.absolute():
                shutil.copyfile(one, folder / one.name)
        (folder / script).write_text(_SCRIPT.format(file=spec.file.name, version=version))
        (folder / "job.json").write_text(json.dumps(definition, indent=2) + "\n")
        (folder / "jars.txt").write_text("".join(f"{jar_path(jar)}\n" for jar in KAFKA_JARS))
    except OSError as error:
        raise PipelineError(f"{folder} cannot be written: {error.strerror or error}") from error
    return Package(
        folder=folder,
        script=folder / script,
        wheel=made,
        definition=folder / "job.json",
        jars=folder / "jars.txt",
        notices=tuple(_notices(spec, location, role)),
    )


def _functions(spec: FileSpec) -> list[Path]:
    """Return the Python files besides the pipeline file. Raises PipelineError on twin names."""
    functions = [one.transform.function for one in spec.pipelines]
    files = dict.fromkeys(one.file for one in functions if one and one.file != spec.file)
    for one in files:
        if one.parent != spec.file.parent:
            raise PipelineError(
                f"{one}: on AWS Glue all files lie in one folder; put it beside {spec.file.name}"
            )
    return list(files)


def _ends(trigger: tuple[str, str | bool] | None) -> bool:
    return trigger is not None and trigger[0] in ("availableNow", "once")


def _notices(spec: FileSpec, location: str, role: str) -> list[str]:
    notices = []
    if location == LOCATION or role == ROLE:
        notices.append("job.json: replace YOUR-BUCKET and YOUR-GLUE-ROLE")
    for one in spec.pipelines:
        for name, path in (
            ("sink.target", one.sink.target),
            ("delivery.checkpoint", one.delivery.checkpoint),
        ):
            if "/" in path and "://" not in path:
                notices.append(f"{one.name}: {name} is a local path, which Glue loses: {path}")
        servers = one.source.kafka.bootstrap_servers
        if servers.startswith(("localhost:", "127.")):
            notices.append(f"{one.name}: source.bootstrap_servers is this machine: {servers}")
    if "${" in spec.file.read_text(encoding="utf-8"):
        notices.append(
            "The file takes values from environment variables; on Glue the job's argument "
            "--customer-driver-env-vars sets them, and their names begin with CUSTOMER_"
        )
    given = [name for name in _OF_GLUE if getattr(spec.spark, name)]
    if given:
        notices.append(f"[spark] {', '.join(given)}: Glue's own holds there")
    return notices
