import pytest

from ottla.controller.coordination import check_path, parent_of


@pytest.mark.parametrize(
    ("path", "parent"), [("/a", "/"), ("/a/b", "/a"), ("/a/b/c", "/a/b"), ("/", "/")]
)
def test_parents(path: str, parent: str) -> None:
    assert parent_of(path) == parent


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/a\0"])
def test_paths_that_a_tree_would_not_take(path: str) -> None:
    with pytest.raises(AssertionError):
        check_path(path)
