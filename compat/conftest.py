"""Fixtures of the REST, SDK and socket suites."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness.cast import Bot, Cast, Person
from harness.clients import changed_files
from harness.contract import Oracle
from harness.server import NotReady, Server


@pytest.fixture(scope="session", autouse=True)
def published_clients() -> None:
    """Nothing here means anything unless the clients are the published ones."""
    assert not (changed := changed_files()), f"not as published (run compat/setup.sh anew): {changed}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not end it; each test brings its own people."""
    server = Server(tmp_path_factory.mktemp("server"))
    try:
        server.start()
    except NotReady as error:
        # Said once, and not by each test.
        pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)
    yield server
    server.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed or restarted at will."""
    server = Server(tmp_path).start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def watched() -> Iterator[Oracle]:
    with Oracle().watching() as oracle:
        yield oracle


@pytest.fixture(autouse=True)
def contract(watched: Oracle) -> Iterator[Oracle]:
    """No test passes when one of the replies that it caused breaks the contract."""
    yield watched
    violations = watched.take()
    assert not violations, "replies that break the contract:\n" + "\n".join(violations)


@pytest.fixture
async def cast(server: Server) -> AsyncIterator[Cast]:
    async with Cast(server) as cast:
        yield cast


@pytest.fixture
async def ann(cast: Cast) -> Person:
    """A person with nothing yet."""
    return await cast.person()


@pytest.fixture
async def bot(cast: Cast, ann: Person) -> Bot:
    """Ann's agent."""
    return await cast.bot(ann, "Writer")
