"""The program of the figure `delta-limit`: `ADDRESS TOPIC ROWS BATCH FOLDER`.

Runs in an environment with confluent-kafka, pyarrow and deltalake, and without Ottla.
"""

import io
import json
import sys
import time
from statistics import median

import deltalake
import pyarrow as pa
from confluent_kafka import Consumer
from pyarrow import json as arrow_json

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64()), ("note", pa.string())]
)


def main() -> None:
    address, topic, rows_text, batch_text, folder = sys.argv[1:]
    rows, batch = int(rows_text), int(batch_text)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "delta-limit",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    options = arrow_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    rates = []
    written = 0
    began = time.monotonic()
    while written < rows:
        values: list[bytes] = []
        while len(values) < batch:
            records = consumer.consume(min(20_000, batch - len(values)), timeout=30)
            if not records:
                raise SystemExit(f"no more rows after {written + len(values)}")
            values += [record.value() for record in records]
        text = io.BytesIO(b"\n".join(values))
        table = arrow_json.read_json(text, parse_options=options)
        deltalake.write_deltalake(folder, table, mode="append")
        written += len(values)
        now = time.monotonic()
        rates.append(len(values) / (now - began))
        began = now
    consumer.close()
    found = deltalake.DeltaTable(folder).to_pyarrow_dataset().count_rows()
    print(json.dumps({"rows": found, "rows_per_second": median(rates[1:])}))


if __name__ == "__main__":
    main()
