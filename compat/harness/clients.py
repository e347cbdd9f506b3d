"""That the clients are the published ones: each installed file against the hash in its wheel's own record."""

from __future__ import annotations

import base64
import hashlib
from importlib import metadata

CLIENTS = ("band-sdk", "band-sdk-core", "band-client-rest", "band-mcp", "phoenix-channels-python-client")


def changed_files() -> list[str]:
    """The files of the installed clients that are not what was published."""
    return [
        str(file.locate())
        for distribution in metadata.distributions()
        if distribution.name in CLIENTS
        for file in distribution.files or ()
        if file.hash is not None and _hash(file) != file.hash.value
    ]


def _hash(file: metadata.PackagePath) -> str:
    assert file.hash is not None
    digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
