"""Our own API document as the generator is given it. It describes every route, and links each reply that holds an id to
what can be done with that id: schemathesis walks those links.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import schemathesis

from harness.paths import CONTRACT

DOCUMENT = CONTRACT.parent.parent / "docs" / "openapi.json"
# What would end the walk for everybody: these take the caller's own standing away.
LEFT_OUT = ("/demote", "/disable", "/rotate")
SEED = 4100


def document() -> dict[str, Any]:
    own = json.loads(DOCUMENT.read_text())
    paths: dict[str, Any] = {}
    for template, methods in own["paths"].items():
        if template.endswith(LEFT_OUT):
            continue
        kept = {}
        for method, operation in methods.items():
            if method == "delete" and template.startswith("/api/v1/admin/"):
                continue
            operation = copy.deepcopy(operation)
            content = operation.get("requestBody", {}).get("content", {})
            if "*/*" in content:
                # What nobody names cannot be generated.
                content["application/octet-stream"] = content.pop("*/*")
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "x-file-name":
                    parameter["schema"] |= {"pattern": "^[a-z ]{0,9}[a-z]$"}
            # The keys are given by hand.
            operation.pop("security", None)
            kept[method] = operation
        paths[template] = kept
    ids = {operation["operationId"] for methods in paths.values() for operation in methods.values()}
    for methods in paths.values():
        for operation in methods.values():
            for response in operation["responses"].values():
                links = response.get("links", {})
                for name in set(links) - ids:
                    del links[name]
    own["components"].pop("securitySchemes")
    return {**own, "paths": paths}


CONFIG = {
    "seed": SEED,
    "generation": {"max-examples": 20, "database": "none"},
    # Methods that the document does not have are the business of the server's own tests.
    "phases": {"coverage": {"unexpected-methods": []}},
}
OWN = schemathesis.openapi.from_dict(document(), config=schemathesis.Config.from_dict(CONFIG))
