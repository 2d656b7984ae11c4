"""Gives the name of something that cannot be used to a new file, and keeps the old one."""

import logging
import os
from itertools import count
from typing import Final

logger = logging.getLogger("ottla.recovery")

DAMAGED: Final = ".damaged"


def free_path(path: str) -> str:
    """`path`, or with the first number at its end that no file has."""
    if not os.path.lexists(path):
        return path
    numbered = (f"{path}-{number}" for number in count(2))
    return next(each for each in numbered if not os.path.lexists(each))


def make_way(path: str) -> None:
    """Rename what has this name if it is no file that can be written: a folder, or a file without
    the permission or on a bad part of the disk. Raises OSError.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return
    except OSError as error:
        renamed = free_path(path + DAMAGED)
        os.rename(path, renamed)
        logger.warning("cannot use %s (%s): it is now %s", path, error.strerror, renamed)
