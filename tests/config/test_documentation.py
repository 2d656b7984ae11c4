from pathlib import Path

from ottla.config.broker import BrokerConfig
from ottla.config.documentation import tables, with_tables
from ottla.config.unneeded import UNNEEDED

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_says_what_the_code_does() -> None:
    page = PAGE.read_text()
    assert with_tables(page) == page, "run: python -m ottla.config.documentation " + PAGE.name


def test_every_difference_from_kafka_is_listed_with_its_reason() -> None:
    rows = tables()["different"].splitlines()[2:]
    different = [
        each for each in BrokerConfig.definitions.values() if each.kafka_default is not None
    ]
    assert len(rows) == len(different)
    for row, each in zip(rows, different, strict=True):
        assert each.name in row
        assert each.why in row


def test_every_setting_without_effect_is_listed() -> None:
    listed = tables()["unneeded"]
    assert all(f"`{name}`" in listed for name in UNNEEDED)
