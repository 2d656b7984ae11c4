from pathlib import Path

import pytest
from bench.measure import KAFKA, OTTLA, Bench
from components.apache_kafka import KafkaJars

from bench.figures import test_kit
from bench.figures import test_kit_job as job

SECONDS = {
    job.KIT: {"import": 0.1, "first": 0.5, "further": 0.01},
    job.KAFKA: {"import": 0.05, "first": 4.0, "further": 0.02},
    job.MOCK: {"import": 0.05, "first": 0.25, "further": 0.004},
}


def test_each_broker_stands_beside_the_mock(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[tuple[str, ...]] = []

    def run(way: str, *place: str) -> dict[str, float]:
        places.append((way, *place))
        return SECONDS[way]

    monkeypatch.setattr(test_kit, "run", run)
    figure, bench = test_kit.TestKit(), Bench(KafkaJars(Path("/jars"), "/java"), Path(), quick=True)
    ottla, kafka = figure.measure(OTTLA, bench), figure.measure(KAFKA, bench)
    names = {measure.name for measure in figure.measures}
    assert ottla.keys() == kafka.keys() == names
    assert (ottla["first test"], ottla["further test"], ottla["import"]) == (0.5, 10.0, 100.0)
    assert (kafka["first test"], kafka["further test"], kafka["import"]) == (4.0, 20.0, 50.0)
    mock = [name for name in names if name.endswith(test_kit.MOCK)]
    assert {ottla[name] for name in mock} == {kafka[name] for name in mock} == {0.25, 4.0}
    assert places == [
        (job.KIT,),
        (job.MOCK,),
        (job.KAFKA, "/jars", "/java"),
        (job.MOCK,),
    ]
