from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.stage import Target, set_up
from harness.server import NotReady, Server


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    server = Server(tmp_path_factory.mktemp("server"))
    try:
        server.start()
    except NotReady as error:
        # Said once, and not by each test.
        pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)
    yield set_up(server)
    server.close()
