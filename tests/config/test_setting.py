import pytest

from ottla.config.error import ConfigError
from ottla.config.setting import Setting, Settings, boolean, integer, optional_long, words
from ottla.config.validator import at_least


class Fruit(Settings):
    apples_count = integer("apples.count", 3, "How many.", at_least(0))
    apples_ripe = boolean("apples.ripe", True, "Whether.")


class Basket(Fruit):
    basket_size = optional_long("basket.size", "How large.")
    basket_names = words("basket.names", ("a",), "Whose.")


def test_values_are_typed_attributes_and_definitions_are_on_the_class() -> None:
    basket = Basket().load({"apples.count": " 5 ", "basket.names": "x,y"})
    assert basket.apples_count + 1 == 6
    assert basket.apples_ripe is True
    assert basket.basket_size is None
    assert basket.basket_names == ("x", "y")
    assert isinstance(Basket.apples_count, Setting)
    assert list(Basket.definitions) == [
        "apples.count",
        "apples.ripe",
        "basket.size",
        "basket.names",
    ]


def test_a_value_is_available_by_name_and_as_text() -> None:
    basket = Basket().load({})
    assert basket.value("apples.count") == 3
    assert basket.text("apples.ripe") == "true"
    assert basket.text("basket.size") is None
    with pytest.raises(KeyError):
        basket.value("pears")


def test_a_bad_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="Value must be at least 0"):
        Basket().load({"apples.count": "-1"})


def test_an_attribute_must_be_named_after_its_setting() -> None:
    with pytest.raises(AssertionError):

        class Wrong(Settings):
            pears = integer("apples.count", 1, "How many.")
