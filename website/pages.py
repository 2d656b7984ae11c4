"""What the site has, and in which order: every page with the file of the repository it comes from.

The pages are plain Markdown, which also reads well in the repository: what only the site needs
(its contents, the generated reference) is added when it is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent

HOME: Final = "README.md"

PIPELINES: Final = (
    "docs/pipelines.md",
    "docs/pipeline-sources.md",
    "docs/pipeline-sinks.md",
    "docs/table-readers.md",
    "docs/pipeline-failures.md",
)
"""The guide to pipelines, in order. A test runs its examples as one program."""

ENGINES: Final = (
    "docs/engines/README.md",
    "docs/engines/kafka-streams.md",
    "docs/engines/spark.md",
    "docs/engines/declarative-pipelines.md",
    "docs/engines/flink.md",
    "docs/engines/kafka-connect.md",
    "docs/engines/hadoop.md",
    "docs/engines/beam.md",
)
"""The engines around Kafka, each with a program that a test runs."""

SECTIONS: Final = {
    "Start": ("docs/getting-started.md",),
    "Tutorial": (
        "docs/kafka-in-a-nutshell.md",
        "docs/tutorial/first-message.md",
        "docs/tutorial/first-group.md",
        "docs/tutorial/first-pipeline.md",
        "docs/tutorial/secured-broker.md",
        "docs/tutorial/console.md",
        "docs/cluster.md",
    ),
    "How to": (
        "docs/testing.md",
        *PIPELINES,
        *ENGINES,
        "docs/scale.md",
        "docs/metrics.md",
        "docs/security.md",
        "docs/websocket.md",
        "docs/console.md",
        "docs/console-compared.md",
        "docs/from-apache-kafka.md",
        "docs/mirror.md",
        "docs/authorization.md",
        "docs/quotas.md",
        "docs/testing-compared.md",
        "docs/from-a-spark-job.md",
    ),
    "Reference": (
        "docs/cli.md",
        "commands.md",
        "docs/command-comparison.md",
        "docs/configuration.md",
        "docs/pipeline-file.md",
        "python-testing.md",
        "python-pipelines.md",
    ),
    "Explanation": (
        "docs/journey.md",
        "docs/guarantees.md",
        "docs/differences.md",
        "ARCHITECTURE.md",
        "docs/log-files.md",
        "bench/RESULTS.md",
        "docs/decisions/README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ),
}
"""By section, in order: files of the repository, and the names of generated pages."""

GENERATED: Final = ("commands.md", "python-testing.md", "python-pipelines.md")

# Where a file is on the site, if not at its path below `docs`.
ELSEWHERE: Final = {
    HOME: "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/RESULTS.md": "results.md",
}


def decisions() -> list[str]:
    """The decisions' files, which the page of decisions lists."""
    folder = ROOT / "docs" / "decisions"
    return sorted(f"docs/decisions/{path.name}" for path in folder.glob("*.md"))


def sources() -> dict[str, str]:
    """Each file of the repository that becomes a page, and its path on the site."""
    listed = [page for pages in SECTIONS.values() for page in pages if page not in GENERATED]
    files = dict.fromkeys([HOME, *listed, *decisions()])
    return {name: ELSEWHERE.get(name, name.removeprefix("docs/")) for name in files}
