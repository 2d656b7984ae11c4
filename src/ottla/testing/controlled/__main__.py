"""`python -m ottla.testing.controlled --control SOCKET ...`; see `process`."""

import sys

if __name__ == "__main__":
    # kio imports hypothesis if it is installed, for test strategies that no broker needs: half of a
    # broker's start in the environment of a project with tests.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]

    from ottla.testing.controlled.process import main

    sys.exit(main(sys.argv[1:]))
