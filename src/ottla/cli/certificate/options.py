"""Where the certificates lie, and what is said of one that was made."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import Parameter
from ottla.cli.rows import column, only_json, row
from ottla.cli.screen import say, write
from ottla.cli.value_types import WholeNumber
from ottla.security.development.certificates import (
    CERTIFICATE_DAYS,
    MAX_DAYS,
    Facts,
    Signed,
    facts_of,
    read_authority,
)
from ottla.wording.plural import plural

AUTHORITY: Final = "authority"
BROKER: Final = "broker"
NOT_IN_FILES: Final = re.compile(r"[^\w.@-]+")
FOLDER: Final = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="certificates",
    metavar="DIR",
    help="Where the authority and its certificates lie. Created if missing.",
)
REPLACE: Final = click.option("--replace", is_flag=True, help="Replace what exists.")


def days_option(default: int) -> Parameter:
    return click.option(
        "--days",
        type=WholeNumber(1, MAX_DAYS),
        default=default,
        help="How long the certificate counts.",
    )


DAYS: Final = days_option(CERTIFICATE_DAYS)


@row
class ShownCertificate:
    """A certificate. `expires` is in UTC, `days_left` negative once it has expired."""

    file: str
    subject: str
    names: Sequence[str] = column("for", lambda each: ", ".join(each.names), is_optional=True)
    issuer: str = column("issued by", lambda each: "itself" if each.is_own else each.issuer)
    authority: bool = only_json()
    not_before: str = only_json()
    expires: str = column(cell=lambda each: f"{each.expires[:10]} ({each.shown_days})")
    days_left: int = only_json()

    @property
    def is_own(self) -> bool:
        return self.subject == self.issuer

    @property
    def shown_days(self) -> str:
        if self.days_left < 0:
            return "expired"
        return plural(self.days_left, "day")


@row
class MadeCertificate:
    """A certificate that was made, and what to do with it: settings of a broker or a client."""

    file: str
    subject: str
    names: Sequence[str]
    expires: str
    settings: dict[str, str]

    def show(self) -> None:
        names = f", for {', '.join(self.names)}" if self.names else ""
        say(f"Wrote {self.file}: {self.subject}{names}; it expires on {self.expires[:10]}.")
        for name, value in self.settings.items():
            write(f"  {name}={value}\n")


def shown(file: str, facts: Facts) -> ShownCertificate:
    return ShownCertificate(
        file,
        facts.subject,
        facts.names,
        facts.issuer,
        facts.is_authority,
        time_of(facts.not_before),
        time_of(facts.not_after),
        facts.days_left(datetime.now(UTC)),
    )


def made(path: Path, signed: Signed, settings: dict[str, str]) -> MadeCertificate:
    (facts,) = facts_of(signed.certificate)
    return MadeCertificate(
        str(path), facts.subject, facts.names, time_of(facts.not_after), settings
    )


def time_of(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def authority_files(folder: Path) -> tuple[Path, Path]:
    """The key and the certificate."""
    return folder / f"{AUTHORITY}.key", folder / f"{AUTHORITY}.pem"


def file_of(folder: Path, name: str, *, taken: Collection[str]) -> Path:
    """Of the certificate with this name, as one that files may have everywhere. Raises UsageFailed
    for those that are `taken`.
    """
    file = NOT_IN_FILES.sub("-", name).strip(".-")
    if not file or file in taken:
        raise UsageFailed(f"this certificate cannot have the name {name!r}.")
    return folder / f"{file}.pem"


def authority_in(folder: Path) -> Signed:
    """Raises CertificateError, and Failed where there is none."""
    key, certificate = authority_files(folder)
    if not key.exists() and not certificate.exists():
        raise Failed(
            f"there is no authority in {folder}.",
            f"Make one: ottla certificate authority --folder {folder}",
        )
    return read_authority(key, certificate)
