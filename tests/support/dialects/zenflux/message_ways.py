"""The ways to say something in ZenFlux that wait for a place on a stream."""

from tests.support.dialects.zenflux.client import Client
from tests.support.gateway_server import Served
from tests.support.refused_messages import FULL, OK, UNCERTAIN, post


async def post_chat(served: Served, session: str, words: str, stream: bool = True) -> str:
    said = {"message": words, "userId": "local", "conversationId": session, "stream": stream}
    return await post(served, "/api/v1/chat", said)


async def post_chat_at_once(served: Served, session: str, words: str) -> str:
    return await post_chat(served, session, words, False)


async def post_new_chat(served: Served, session: str, words: str) -> str:
    return await post(served, "/api/v1/chat", {"message": words, "userId": "local", "stream": False})


async def send_chat(served: Served, session: str, words: str) -> str:
    async with Client(served).chat() as chat:
        answer = await chat.ask("chat.send", message=words, user_id="local", conversation_id=session)
        return OK if answer["ok"] else {"OVERLOADED": FULL, "TIMEOUT": UNCERTAIN}[answer["error"]["code"]]


WAYS = {
    "zenflux": post_chat,
    "zenflux at once": post_chat_at_once,
    "zenflux new": post_new_chat,
    "zenflux socket": send_chat,
}
AT_ONCE = ("zenflux at once", "zenflux new")
"""Those whose answer comes when the turn is over."""
