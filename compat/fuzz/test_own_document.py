"""Generated requests from our own document: to the routes that the contract does not have, and along its links.

The links are walked by schemathesis's own state machine. Hypothesis takes a server that remembers for a flaky test, so
what it finds is kept apart from what it thinks of it: each round is a walk with a seed of its own, and only a reply
that the document does not allow fails the test.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.stateful import run_state_machine_as_test

from fuzz.document import CHECKS, SCHEMA
from fuzz.own import OWN, SEED
from fuzz.stage import Target

ROUNDS, WALKS, STEPS = 12, 4, 12
CONTRACTED = {(operation.ok().method, operation.ok().path) for operation in SCHEMA.get_all_operations()}
OURS = OWN.include(func=lambda context: (context.operation.method, context.operation.path) not in CONTRACTED)


@OURS.parametrize()
def test_an_operation_of_our_own_keeps_our_document(case: schemathesis.Case, target: Target) -> None:
    case.call_and_validate(base_url=target.url, headers=target.key_of(case.operation.path), checks=CHECKS)


# Steps of all walks that a link led to something that is there.
LED: list[str] = []


@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_links_lead_where_the_document_says(number: int, target: Target) -> None:
    found: list[str] = []
    steps: list[str] = []

    class Walk(OWN.as_state_machine()):  # type: ignore[misc]
        def call(self, case: schemathesis.Case, **kwargs: Any) -> schemathesis.Response:
            response = case.call(base_url=target.url, headers=target.key_of(case.operation.path))
            steps.append(f"{case.operation.label} {response.status_code}")
            return response

        def validate_response(self, response: schemathesis.Response, case: schemathesis.Case, **kwargs: Any) -> None:
            try:
                case.validate_response(response, checks=CHECKS)
            except Exception as failure:  # noqa: BLE001
                found.append(f"{case.operation.label}: {failure}")

    walk = settings(
        max_examples=WALKS,
        stateful_step_count=STEPS,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seeded(SEED + number)(Walk), settings=walk)
    except (Flaky, Unsatisfiable):
        pass
    except Exception:
        if not found:
            raise
    assert not found, "\n\n".join(found)
    LED.extend(step for step in steps if "}" in step and step.endswith((" 200", " 201", " 202", " 204")))
    # A single walk may meet nothing but refusals; all of them together may not.
    if number == ROUNDS - 1:
        assert LED, "no link led anywhere in any walk"
