"""Where things are, relative to the repository, so that nothing here names a machine."""

from __future__ import annotations

import os
from pathlib import Path

COMPAT = Path(__file__).resolve().parent.parent
REPOSITORY = COMPAT.parent
CONTRACT = COMPAT / "openapi.json"


def binary() -> Path:
    """The server under test: `BANDSTAND_BIN`, or the debug build of this repository."""
    path = Path(os.environ.get("BANDSTAND_BIN") or REPOSITORY / "target" / "debug" / "bandstand")
    if not path.is_file():
        raise FileNotFoundError(f"no server binary at {path}: build it, or set BANDSTAND_BIN")
    return path
