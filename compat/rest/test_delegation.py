"""Delegation is not served here, by choice: no SDK calls it."""

from __future__ import annotations

from harness.cast import UNKNOWN_ID, Bot, Person
from harness.refusals import NOT_FOUND, refused


async def test_there_is_no_delegation(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    sent = (await ann.say(room, "On my behalf", bot)).id
    for message in (sent, UNKNOWN_ID):
        exchange = bot.rest.agent_api_delegation.exchange_delegated_token
        assert await refused(exchange, audience=UNKNOWN_ID, message_id=message) == NOT_FOUND
