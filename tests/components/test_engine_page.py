from pathlib import Path

import pytest
from components.engine_page import program

from components import engine_page

PAGE = """
```java
class A {}
```

text

```python
first = 1
```

```python
second = 2
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(engine_page, "FOLDER", tmp_path)
    (tmp_path / "page.md").write_text(PAGE)
    return "page.md"


def test_a_program_is_the_block_of_its_language_with_its_words(page: str) -> None:
    assert program(page, "java") == "class A {}\n"
    assert program(page, "python", "second") == "second = 2\n"


@pytest.mark.parametrize(
    ("language", "having", "said"), [("python", "", "2 blocks"), ("java", "B", "0 blocks")]
)
def test_a_page_without_the_one_program_is_refused(
    page: str, language: str, having: str, said: str
) -> None:
    with pytest.raises(LookupError, match=said):
        program(page, language, having)
