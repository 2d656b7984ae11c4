"""The programs on the pages of `docs/engines`: the tests run what the pages show."""

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent.parent / "docs" / "engines"
_BLOCK: Final = r"^```{language}\n(?P<text>.*?)^```$"


def program(page: str, language: str, having: str = "") -> str:
    """The text of the one block in `language` on the page `page` that has the words `having`.

    Raises LookupError where there is none, or more than one.
    """
    pattern = _BLOCK.format(language=re.escape(language))
    blocks = re.finditer(pattern, (FOLDER / page).read_text(), re.MULTILINE | re.DOTALL)
    found = [block["text"] for block in blocks if having in block["text"]]
    if len(found) != 1:
        raise LookupError(f"{page} has {len(found)} blocks of {language} with {having!r}")
    return found[0]
