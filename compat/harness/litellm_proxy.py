"""LiteLLM's proxy as a child process, from an environment of its own: started, awaited, ended by its process id.

It has nothing but this machine: what it would fetch when it starts is switched off, and a proxy setting leads all else
to a listener that counts whoever asks.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harness.paths import COMPAT

PROGRAM = COMPAT / ".venv-litellm" / "bin" / "litellm"
READY_WITHIN_S = 90.0
ENDS_WITHIN_S = 20.0
POLL_EVERY_S = 0.1
KEY = "sk-compat-0123456789"

# Nothing is fetched at the start, nothing is told to anybody.
AT_HOME = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_AUTOROUTER_PRESETS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOCAL_POLICY_TEMPLATES": "True",
    "LITELLM_TELEMETRY_DISABLED": "True",
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env of whoever runs the tests
    "LITELLM_LOG": "ERROR",
    "DISABLE_ADMIN_UI": "True",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
}


class Outside:
    """Stands where the rest of the world would be reached, and counts who tries."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:{}".format(self._listener.getsockname()[1])
        self.asked: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # Closed.
            with connection:
                connection.settimeout(1)
                try:
                    self.asked.append(connection.recv(4096).decode("latin-1").split("\r\n", 1)[0])
                except OSError:
                    self.asked.append("(somebody who said nothing)")

    def close(self) -> None:
        self._listener.close()


class LiteLlm:
    """The proxy with a list of models, each `name: how LiteLLM is told to reach it`."""

    def __init__(self, folder: Path, models: dict[str, dict[str, Any]]) -> None:
        assert PROGRAM.is_file(), f"no program at {PROGRAM}: compat/setup.sh"
        self._outside = Outside()
        self._log = folder / "litellm.log"
        config = folder / "litellm.json"  # JSON is YAML
        config.write_text(
            json.dumps(
                {
                    "model_list": [{"model_name": name, "litellm_params": given} for name, given in models.items()],
                    # A failure is told as it is: our client is the one that tries again.
                    "litellm_settings": {"num_retries": 0, "telemetry": False},
                    "router_settings": {"num_retries": 0, "disable_cooldowns": True},
                    "general_settings": {"master_key": KEY},
                }
            )
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), "--config", str(config), "--host", "127.0.0.1", "--port", str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**inherited, **AT_HOME, "HTTP_PROXY": self._outside.url, "HTTPS_PROXY": self._outside.url},
            )
        try:
            self._await_ready()
        except BaseException:
            self._process.kill()
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def close(self) -> None:
        """Ends it, and insists that it asked nobody but this machine."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(ENDS_WITHIN_S)
        self._outside.close()
        assert self._outside.asked == [], "LiteLLM tried to reach the network"

    def log(self) -> str:
        """The end of what it wrote, for a failure's report."""
        return self._log.read_text()[-4000:]

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        # The contract's oracle watches httpx, and this is none of its replies.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while time.monotonic() < deadline:
            code = self._process.poll()
            assert code is None, f"LiteLLM ended with {code}\n{self.log()}"
            try:
                with opener.open(f"{self.url}/health/readiness", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(POLL_EVERY_S)  # Asked again, up to the deadline.
        raise AssertionError(f"LiteLLM is not ready within {READY_WITHIN_S} s\n{self.log()}")
