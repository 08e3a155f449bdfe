"""The ways to say something in AAP that wait for a place on a stream."""

from tests.support.gateway_server import Served
from tests.support.refused_messages import post


async def post_turn(served: Served, session: str, words: str, stream: str = "delta") -> str:
    said = {"stream": stream, "messages": [{"role": "user", "content": words}]}
    return await post(served, f"/aap/sessions/{session}/turns", said)


async def post_turn_at_once(served: Served, session: str, words: str) -> str:
    return await post_turn(served, session, words, "none")


WAYS = {"aap": post_turn, "aap at once": post_turn_at_once}
AT_ONCE = ("aap at once",)
"""Those whose answer comes when the turn is over."""
