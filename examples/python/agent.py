"""An agent in ten lines: it says something, asks something, and goes by the answer."""


async def reply(text, turn, city="Istanbul"):
    yield f"You said: {text}. "
    if "weather" not in text:
        yield "Ask me about the weather."
        return
    day = await turn.ask_user("For which day?", ["Today", "Tomorrow"])
    yield f"{day} it will be sunny in {city}."
