"""Runs `band-mcp` as its console script does, with every reply that it gets held against the contract.

What breaks the contract is written to the file that MCP_VIOLATIONS names; an empty file says that nothing did.
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path

from harness.contract import Oracle


def main() -> None:
    (script,) = entry_points(group="console_scripts", name="band-mcp")
    with Oracle().watching() as oracle:
        try:
            script.load()()
        finally:
            Path(os.environ["MCP_VIOLATIONS"]).write_text("\n".join(oracle.take()))


if __name__ == "__main__":
    main()
