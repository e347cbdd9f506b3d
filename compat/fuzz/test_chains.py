"""Generated requests in chains: what an answer names goes into the next request.

The requests are drawn before the first one is sent. schemathesis's own state machine draws each by the answers so far,
and Hypothesis takes a server that remembers for a flaky test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz.document import CONFIG, NOBODY, PEER, ROOM, SCHEMA, STRANGER
from fuzz.stage import Target

CHAINS, LENGTH = 25, 10


@dataclass(frozen=True)
class Link:
    """Where an answer leads: an operation, what goes into its path, and its body unless that is generated."""

    operation: str
    path: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None


# Runtime expressions of OpenAPI: what stands in the answer, or stood in its request.
MADE, AGENT, SAME, HERE = (
    "$response.body#/data/id",
    "$response.body#/data/agent/id",
    "$request.path.id",
    "$request.path.chat_id",
)
OF_ROOM = {"chat_id": HERE}
IN_ROOM = {"chat_id": HERE, "id": MADE}
ITSELF = {"id": MADE}
ATTACHED = {"message": {"content": "See there", "mentions": [{"id": PEER}], "attachment_ids": [MADE]}}

# Where chains begin, and the body with which they do unless that is generated.
BEGINNINGS: dict[str, dict[str, Any] | None] = {
    "createChatTask": None,
    "putChatBoard": None,
    "createAgentMemory": None,
    "uploadAgentChatFile": None,
    "createAgentChatMessage": None,
    "sendMyChatMessage": None,
    "addAgentContact": {"handle": STRANGER},
    "createContactRequest": {"contact_request": {"recipient_handle": STRANGER}},
    "createMyChatRoom": None,
    "registerMyAgent": None,
}
LINKS: dict[str, list[Link]] = {
    "createChatTask": [
        Link("getChatTask", IN_ROOM),
        Link("getChatTask", {"chat_id": HERE, "id": "$response.body#/data/number"}),
        Link("updateChatTask", IN_ROOM),
        Link("updateChatTask", IN_ROOM, {"state": "archived"}),
        Link("getChatTaskHistory", IN_ROOM),
        Link("createChatTask", OF_ROOM, {"subject": "Better", "supersedes_id": MADE}),
    ],
    "updateChatTask": [
        Link("updateChatTask", IN_ROOM),
        Link("updateChatTask", IN_ROOM, {"state": "active"}),
        Link("getChatTaskHistory", IN_ROOM),
    ],
    "putChatBoard": [Link("getChatBoard", OF_ROOM), Link("putChatBoard", OF_ROOM)],
    "createAgentMemory": [
        Link("getAgentMemory", ITSELF),
        Link("supersedeAgentMemory", ITSELF),
        Link("archiveAgentMemory", ITSELF),
        Link("getUserMemory", ITSELF),
        Link("archiveUserMemory", ITSELF),
        Link("restoreUserMemory", ITSELF),
        Link("supersedeUserMemory", ITSELF),
        Link("deleteUserMemory", ITSELF),
    ],
    "uploadAgentChatFile": [
        Link("downloadAgentChatFile", IN_ROOM),
        Link("downloadMyChatFile", IN_ROOM),
        Link("createAgentChatMessage", OF_ROOM, ATTACHED),
    ],
    "createAgentChatMessage": [
        Link("markAgentMessageProcessing", IN_ROOM),
        Link("listMyChatMessages", OF_ROOM),
        Link("getAgentChatContext", OF_ROOM),
    ],
    "sendMyChatMessage": [
        Link("markAgentMessageProcessing", IN_ROOM),
        Link("listAgentMessages", OF_ROOM),
        Link("getAgentNextMessage", OF_ROOM),
    ],
    "markAgentMessageProcessing": [
        Link("markAgentMessageProcessed", {"chat_id": HERE, "id": SAME}),
        Link("markAgentMessageFailed", {"chat_id": HERE, "id": SAME}),
        Link("markAgentMessageProcessing", {"chat_id": HERE, "id": SAME}),
    ],
    "addAgentContact": [
        Link("respondToAgentContactRequest", body={"action": "cancel", "request_id": MADE}),
        Link("respondToAgentContactRequest", body={"action": "approve", "request_id": MADE}),
        Link("listAgentContactRequests"),
    ],
    "createContactRequest": [
        Link("cancelContactRequest", ITSELF),
        Link("approveContactRequest", ITSELF),
        Link("listSentContactRequests"),
    ],
    "createMyChatRoom": [
        Link("getMyChatRoom", ITSELF),
        Link("renameMyChatRoom", ITSELF),
        Link("addMyChatParticipant", {"chat_id": MADE}),
        Link("listMyChatParticipants", {"chat_id": MADE}),
        Link("sendMyChatMessage", {"chat_id": MADE}),
        Link("stopMyChatAgents", {"chat_id": MADE}),
        Link("playMyChatAgents", {"chat_id": MADE}),
        Link("deleteMyChatRoom", ITSELF),
        Link("bulkDeleteMyChats", body={"ids": [MADE, NOBODY]}),
    ],
    "bulkDeleteMyChats": [Link("showMyBulkDeletion", ITSELF)],
    "registerMyAgent": [
        Link("listMyAgentExecutions", {"id": AGENT}),
        Link("deleteMyAgent", {"id": AGENT}),
        Link("bulkDeleteMyAgents", body={"ids": [AGENT], "force": True}),
    ],
    "bulkDeleteMyAgents": [Link("showMyBulkDeletion", ITSELF)],
    "listMyAgentExecutions": [
        Link("interruptMyAgentExecution", {"id": SAME, "execution_id": "$response.body#/data/0/id"})
    ],
}


@dataclass
class Step:
    """A request, and the earlier one whose answer it is about."""

    operation: str
    case: schemathesis.Case
    link: Link
    before: int


@st.composite
def chains(draw: st.DrawFn, beginning: str) -> list[Step]:
    def request(operation: str) -> schemathesis.Case:
        return draw(SCHEMA.find_operation_by_id(operation).as_strategy())

    first = request(beginning)
    if "chat_id" in (first.path_parameters or {}):
        first.path_parameters = {"chat_id": ROOM}
    if BEGINNINGS[beginning] is not None:
        first.body = BEGINNINGS[beginning]
    steps = [Step(beginning, first, Link(beginning), -1)]
    for _ in range(draw(st.integers(1, LENGTH))):
        before = draw(st.sampled_from([number for number, step in enumerate(steps) if step.operation in LINKS]))
        link = draw(st.sampled_from(LINKS[steps[before].operation]))
        steps.append(Step(link.operation, request(link.operation), link, before))
    return steps


def evaluated(value: Any, case: schemathesis.Case, answer: Any) -> Any:
    """A body or path with its expressions replaced by what they stand for; raises LookupError where that is nothing."""
    match value:
        case str() if value.startswith("$request.path."):
            return case.path_parameters[value.removeprefix("$request.path.")]
        case str() if value.startswith("$response.body#/"):
            for part in value.removeprefix("$response.body#/").split("/"):
                answer = answer[int(part) if isinstance(answer, list) else part]
            return answer
        case list():
            return [evaluated(one, case, answer) for one in value]
        case dict():
            return {name: evaluated(one, case, answer) for name, one in value.items()}
        case _:
            return value


def follow(step: Step, case: schemathesis.Case, answer: Any) -> bool:
    """Puts into a request what an earlier one and its answer say; whether they say it."""
    try:
        path = {name: str(one) for name, one in evaluated(step.link.path, case, answer).items()}
        if step.link.body is not None:
            step.case.body = evaluated(step.link.body, case, answer)
    except LookupError:
        return False
    step.case.path_parameters = {**(step.case.path_parameters or {}), **path}
    return True


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_what_an_answer_leads_to_keeps_the_contract(beginning: str, target: Target) -> None:
    @seed(CONFIG["seed"])
    @settings(
        max_examples=CHAINS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(chains(beginning))
    def run(steps: list[Step]) -> None:
        answers: dict[int, Any] = {}
        for number, step in enumerate(steps):
            begins = number == 0
            if not begins and step.before not in answers:
                continue
            if not begins and not follow(step, steps[step.before].case, answers[step.before]):
                continue
            reply = target.call(step.case)
            if 200 <= reply.status_code < 300 and reply.content:
                answers[number] = reply.json() if "json" in reply.headers["content-type"][0] else None

    run()
