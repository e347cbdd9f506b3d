"""Which database engine the server under test uses, and one fresh database for each server on PostgreSQL.

A second server on the same PostgreSQL database is refused on purpose, so every server of a run needs its own.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


class Database:
    """A PostgreSQL database that exists as long as one server's data."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._name = f"compat_{secrets.token_hex(6)}"
        _psql(cluster, f"CREATE DATABASE {self._name}")
        self.url = urlunsplit(urlsplit(cluster)._replace(path=f"/{self._name}"))

    def drop(self) -> None:
        _psql(self._cluster, f"DROP DATABASE IF EXISTS {self._name} WITH (FORCE)")


def fresh_database() -> Database | None:
    """A database for one server, or None when it embeds SQLite in its data folder."""
    match os.environ.get("COMPAT_ENGINE", "sqlite"):
        case "sqlite":
            return None
        case "postgres":
            return Database(os.environ["COMPAT_DATABASE_URL"])
        case other:
            raise ValueError(f"COMPAT_ENGINE is sqlite or postgres, not {other!r}")


def _psql(url: str, statement: str) -> None:
    subprocess.run(
        [_psql_binary(), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement, url],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )


def _psql_binary() -> str:
    found = shutil.which("psql")
    if found:
        return found
    # Debian keeps the binaries of each major version in its own folder, outside PATH.
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"))
    if not installed:
        raise FileNotFoundError("psql is missing: it makes the databases of a PostgreSQL run")
    return str(installed[-1])
