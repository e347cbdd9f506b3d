"""The schemas of band-sdk's own platform tools, without the descriptions, are those of `tool_schemas.json`.

The Rust SDK's schemas are held against the same file (crates/agent/tests/it/schemas.rs), so the two SDKs tell a model the
same of every tool. Only the descriptions differ: each SDK has its own words.

After an upgrade of band-sdk: `python compat/sdk/test_schemas.py > compat/sdk/tool_schemas.json`, and look at what changed.
"""

import json
from pathlib import Path

from band.core.types import Capability
from band.runtime.tools import AgentTools

FILE = Path(__file__).with_name("tool_schemas.json")


def undescribed(value):
    if isinstance(value, dict):
        return {
            name: undescribed(child)
            for name, child in value.items()
            if name != "description" or not isinstance(child, str)
        }
    if isinstance(value, list):
        return [undescribed(item) for item in value]
    return value


def schemas():
    tools = AgentTools("room", rest=None)
    return undescribed(tools.get_openai_tool_schemas(capabilities=frozenset(Capability)))


def test_the_schemas_are_those_that_the_rust_sdk_is_held_against():
    assert schemas() == json.loads(FILE.read_text())


def test_both_forms_hold_the_same_schema():
    tools = AgentTools("room", rest=None)
    capabilities = frozenset(Capability)
    openai = [tool["function"]["parameters"] for tool in tools.get_openai_tool_schemas(capabilities=capabilities)]
    anthropic = [tool["input_schema"] for tool in tools.get_anthropic_tool_schemas(capabilities=capabilities)]
    assert openai == anthropic


if __name__ == "__main__":
    print(json.dumps(schemas(), indent=2, sort_keys=True))
