"""Waiting for a condition, never for a time: every wait has a deadline and says what it waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

POLL_EVERY_S = 0.02


async def eventually(probe: Callable[[], Awaitable[T]], *, what: str, within: float = 10.0) -> T:
    """Asks again until the answer is truthy, and returns that answer."""
    answer: object = None
    try:
        async with asyncio.timeout(within):
            while not (answer := await probe()):
                await asyncio.sleep(POLL_EVERY_S)
    except TimeoutError:
        raise AssertionError(f"not within {within} s: {what}; last answer: {answer!r}") from None
    return answer


async def within(seconds: float, awaitable: Awaitable[T], *, what: str) -> T:
    """The result of an awaitable that must come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await awaitable
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None
