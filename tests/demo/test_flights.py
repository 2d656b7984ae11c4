"""The demo's data."""

import json
from pathlib import Path

from demo.flights import FLIGHTS, read_flights
from demo.processes import PIPELINE_FILE, pipeline_environment

from ottla.pipelines.file.read import read_file


def test_every_flight_is_a_record_keyed_by_its_tail_number() -> None:
    count = without_key = 0
    first: tuple[bytes | None, bytes] = (None, b"")
    for key, value in read_flights():
        first = first if count else (key, value)
        count += 1
        without_key += key is None

    assert count == FLIGHTS
    assert without_key == 2_512  # the data set knows no tail number for these
    assert first[0] == b"N14228"
    record = json.loads(first[1])
    assert (record["carrier"], record["dep_delay"], record["dest"]) == ("UA", 2, "IAH")
    environment = pipeline_environment("localhost:9092", Path("/demo"))
    (pipeline,) = read_file(PIPELINE_FILE, environment).pipelines
    assert pipeline.source.schema is not None
    assert set(record) <= {field.split()[0] for field in pipeline.source.schema.split(",")}
    assert Path(pipeline.transform.tables[0].path).is_file()
