from ottla.wording.spans import spans


def test_numbers_as_ranges() -> None:
    assert spans([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert spans([]) == ""


def test_they_are_sorted_and_separated() -> None:
    assert spans({9, 3, 2}, ", ") == "2-3, 9"
