"""The server under test as a child process: start, drain, kill, restart on the same port and data.

Only the standard library is used here, because the fuzzing environment has nothing else in common with the others.
"""

from __future__ import annotations

import json
import os
import queue
import re
import secrets
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from harness.engine import fresh_database
from harness.paths import binary

READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
READY_WITHIN_S = 30.0
DRAIN_WITHIN_S = 30.0


@dataclass(frozen=True)
class Credentials:
    """What the command line prints once for a new user or agent."""

    id: str
    handle: str
    api_key: str


class NotReady(Exception):
    """The server did not come up; the text holds what it said."""


class Server:
    """One Bandstand server and its data folder; it keeps its port and its owner's key over restarts."""

    def __init__(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        self.data = folder / "data"
        self._options = options
        self._extra = environment or {}
        self.owner_key = f"band_u_{secrets.token_hex(24)}"
        self._log = folder / "server.log"
        self._database = fresh_database()
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/api/v1/socket/websocket"

    def start(self) -> Server:
        """Starts it and returns once it says that it listens."""
        assert self._process is None, "the server is running"
        with self._log.open("a") as errors:
            process = subprocess.Popen(
                [str(binary()), "up", "--listen", f"127.0.0.1:{self._port}", *self._options, *self._place()],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment(),
            )
        # Its output is read to the end, or a full pipe would stop the server.
        announced: queue.Queue[int | None] = queue.Queue()
        threading.Thread(target=self._read_output, args=(process, announced), daemon=True).start()
        try:
            port = announced.get(timeout=READY_WITHIN_S)
        except queue.Empty:
            port = None
        if port is None:
            process.kill()
            raise NotReady(f"the server did not get ready (exit {process.wait()})\n{self.log()}")
        self._port, self._process = port, process
        return self

    def stop(self) -> None:
        """Asks it to drain, and insists that it ends well."""
        process = self._take_process()
        process.send_signal(signal.SIGTERM)
        code = process.wait(DRAIN_WITHIN_S)
        assert code == 0, f"the server ended with {code} after SIGTERM\n{self.log()}"

    def kill(self) -> None:
        """Ends it the hard way: no chance to say goodbye or to write anything."""
        process = self._take_process()
        process.kill()
        process.wait(DRAIN_WITHIN_S)

    def restart(self) -> None:
        """Drains it and starts it again on the same port and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Ends whatever still runs and gives the database back."""
        try:
            if self._process is not None:
                self.stop()
        finally:
            if self._database is not None:
                self._database.drop()

    def add_user(self, name: str) -> Credentials:
        return self._credentials("user", "add", name)

    def add_agent(self, name: str, *flags: str) -> Credentials:
        return self._credentials("agent", "add", name, *flags)

    def add_organization(self, name: str, *members: str) -> str:
        """An organization of these users (by handle); its id."""
        made = self.command("organization", "add", name)
        for member in members:
            self.command("organization", "member", "add", name, member)
        return str(made["id"])

    def command(self, *arguments: str) -> dict[str, object]:
        """Runs the command line against this server's data and reads its JSON."""
        return json.loads(self.said(*arguments, "--json"))

    def said(self, *arguments: str) -> str:
        """Runs the command line against this server's data; what it prints."""
        done = subprocess.run(
            [str(binary()), *arguments, *self._place()],
            capture_output=True,
            text=True,
            env=self._environment(),
            timeout=60,
        )
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def log(self) -> str:
        """The end of what it wrote, for a failure's report."""
        return self._log.read_text()[-4000:] if self._log.exists() else ""

    def _credentials(self, *arguments: str) -> Credentials:
        printed = self.command(*arguments)
        return Credentials(id=str(printed["id"]), handle=str(printed["handle"]), api_key=str(printed["api_key"]))

    def _place(self) -> list[str]:
        database = [] if self._database is None else ["--database", self._database.url]
        return ["--data", str(self.data), *database]

    def _environment(self) -> dict[str, str]:
        # The caller's own settings must not leak into the server under test.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BANDSTAND_")}
        return {**inherited, **self._extra, "BANDSTAND_OWNER_KEY": self.owner_key}

    def _take_process(self) -> subprocess.Popen[str]:
        process, self._process = self._process, None
        assert process is not None, "the server is not running"
        return process

    def _read_output(self, process: subprocess.Popen[str], announced: queue.Queue[int | None]) -> None:
        assert process.stdout is not None
        with self._log.open("a") as log, process.stdout as output:
            for line in output:
                log.write(line)
                log.flush()
                if found := READY.search(line):
                    announced.put(int(found[1]))
        # The output ended: whoever still waits for readiness waits in vain.
        announced.put(None)
