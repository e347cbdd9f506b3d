"""band-mcp 2.2.7 and ours, with the same story on the same server: the same tools, arguments and answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.cast import Cast
from harness.mcp_program import Tools, band_mcp, own_stdio
from harness.mcp_stories import ALL_GROUPS, each_tool_of_a_person, each_tool_of_an_agent
from harness.server import Server

# What differs from one run of a story to the next.
CHANCE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+(\.\d+)?(Z|\+00:00)"), "<time>"),
    (re.compile(r"band_[au]_[\w-]+"), "<key>"),
    (re.compile(r"\b(ann|bob|eve)-[0-9a-f]{8}\b"), r"\1"),
)


def listed() -> dict[str, str]:
    lines = (Path(__file__).parent / "differences.txt").read_text().splitlines()
    rows = [line.split(": ", 1) for line in lines if line and not line.startswith("#")]
    return {where: why for where, why in rows}


def plain(value: Any) -> Any:
    """Without what is chance, and without null fields, which band-mcp adds for every optional field."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in sorted(value.items()) if inner is not None}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        for pattern, word in CHANCE:
            value = pattern.sub(word, value)
    return value


def differing(path: str, theirs: Any, ours: Any) -> list[str]:
    """Where two answers differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        keys = sorted(theirs.keys() | ours.keys())
        return [one for key in keys for one in differing(f"{path}.{key}", theirs.get(key), ours.get(key))]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [one for a, b in zip(theirs, ours, strict=True) for one in differing(f"{path}[]", a, b)]
    return [] if theirs == ours else [f"{path} | {theirs!r} | {ours!r}"]


def shape(schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema lets a client send; not its words."""
    defs = schema.get("$defs", {})

    def read(one: dict[str, Any]) -> Any:
        if "$ref" in one:
            return read(defs[one["$ref"].rsplit("/", 1)[1]])
        if "allOf" in one and len(one["allOf"]) == 1:
            return read(one["allOf"][0])
        if "anyOf" in one:
            return sorted((str(read(inner)) for inner in one["anyOf"]), key=str)
        kept = ("type", "enum", "minimum", "maximum", "maxLength")
        return {key: one[key] for key in kept if key in one} | (
            {"items": read(one["items"])} if isinstance(one.get("items"), dict) and one["items"] else {}
        )

    return {
        "required": sorted(schema.get("required", [])),
        "properties": {name: read(one) for name, one in sorted(schema.get("properties", {}).items())},
        "defaults": {
            name: one["default"] for name, one in schema.get("properties", {}).items() if one.get("default") is not None
        },
    }


@pytest.mark.parametrize("scope", ["agent", "human"])
async def test_the_same_story_with_both(server: Server, cast: Cast, tmp_path: Path, scope: str) -> None:
    offers: list[dict[str, dict[str, Any]]] = []
    answers: list[list[tuple[str, bool, Any]]] = []
    for program in (band_mcp, own_stdio):
        ann = await cast.person("ann")
        bot = await cast.bot(ann, "Writer")
        keys = {"agent": bot} if scope == "agent" else {"person": ann}
        folder = tmp_path / program.__name__
        folder.mkdir()
        async with program(server, folder, "--scope", scope, *ALL_GROUPS, **keys) as call:
            offers.append(await call.offered())
            story = each_tool_of_an_agent if scope == "agent" else each_tool_of_a_person
            await story(call, cast, ann, bot)
            answers.append(call.answers)

    allowed, used = listed(), set()

    def allow(where: str) -> bool:
        used.add(where)
        return where in allowed

    theirs, ours = offers
    found = [f"only band-mcp offers {name}" for name in theirs.keys() - ours.keys()]
    found += [f"only we offer {name}" for name in ours.keys() - theirs.keys() if not allow(f"offered {name}")]
    for name in theirs.keys() & ours.keys():
        places = differing("", shape(theirs[name]), shape(ours[name]))
        found += [f"schema {name}{one}" for one in places if not allow(f"schema {name}{one.split(' | ')[0]}")]
    assert [(name, failed) for name, failed, _ in answers[0]] == [(name, failed) for name, failed, _ in answers[1]]
    for (name, failed, their), (_, _, our) in zip(*answers, strict=True):
        places = differing("", plain(their), plain(our))
        if failed and places and allow(f"refused {name}"):
            continue
        found += [f"answer {name}{one}" for one in places if not allow(f"answer {name}{one.split(' | ')[0]}")]
    assert not found, "not listed:\n" + "\n".join(dict.fromkeys(found))
    mine = {where for where in allowed if where.split()[1].split(".")[0] in ours}
    assert mine <= used, f"listed and not so any more: {mine - used}"
