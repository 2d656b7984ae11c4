"""The reference names every command with its arguments and options."""

from __future__ import annotations

from website.commands import page


def test_a_command_has_its_usage_arguments_options_and_defaults() -> None:
    text = page()
    section = text[text.index("## ottla produce") : text.index("## ottla consume")]
    assert "ottla produce [OPTIONS] TOPIC" in section
    assert r"| `--acks all\|1\|0` |" in section
    assert "Default: `none`." in section
    assert "### ottla topic create\n" in text
    assert "<" not in text.replace("&lt;", "")
