"""Becoming contacts, as most stories begin."""

from __future__ import annotations

from typing import Any

from band_rest.human_api_contacts.types import CreateContactRequestRequestContactRequest

from harness.cast import Bot, Identity, Person


def wish(recipient: str, message: str | None = None) -> CreateContactRequestRequestContactRequest:
    """A person's request, without the message unless there is one."""
    given: dict[str, Any] = {} if message is None else {"message": message}
    return CreateContactRequestRequestContactRequest(recipient_handle=recipient, **given)


async def ask(who: Identity, whom: Identity) -> str:
    """The id of a request from one to the other, each a person or an agent."""
    match who:
        case Bot():
            return (await who.rest.agent_api_contacts.add_agent_contact(handle=whom.handle)).data.id
        case Person():
            request = wish(whom.handle)
            return (await who.rest.human_api_contacts.create_contact_request(contact_request=request)).data.id
        case _:
            raise TypeError(f"neither person nor agent: {who}")


async def befriend(who: Identity, whom: Identity) -> None:
    """Makes the two contacts: one asks, the other consents."""
    request = await ask(who, whom)
    match whom:
        case Bot():
            await whom.rest.agent_api_contacts.respond_to_agent_contact_request(action="approve", request_id=request)
        case Person():
            await whom.rest.human_api_contacts.approve_contact_request(request)
        case _:
            raise TypeError(f"neither person nor agent: {whom}")
