"""Generated requests, good and bad, to each operation by itself: no 5xx, only declared statuses and bodies."""

from __future__ import annotations

import schemathesis

from fuzz.document import SCHEMA
from fuzz.stage import Target


@SCHEMA.parametrize()
def test_an_operation_keeps_the_contract_whatever_it_is_sent(case: schemathesis.Case, target: Target) -> None:
    target.call(case)
