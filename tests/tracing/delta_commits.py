"""Delta logs as pipelines write them."""

import json
from pathlib import Path

TOPIC_ID, CLUSTER = "topic-id", "cluster-id"


def write_commit(
    table: Path, version: int, batch: int, offset: int, topic_id: str = TOPIC_ID, **info: object
) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    said = {
        "ottla.pipeline": 1,
        "query": "flights",
        "id": "id-1",
        "batch": batch,
        "cluster": CLUSTER,
        "topics": {"flights": {"id": topic_id, "offsets": {"0": offset}}},
    }
    commit = {"timestamp": 1_000 * version, "userMetadata": json.dumps(said), **info}
    lines = ['{"protocol":{}}', json.dumps({"commitInfo": commit}), '{"add":{}}']
    (log / f"{version:020d}.json").write_text("\n".join(lines))
