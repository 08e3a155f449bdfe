"""The examination of clients: a server plays scripted situations, and what the client sends is judged.

`suite.py` finds what belongs to a dialect; `situations.py` has the situations that all dialects can play; `runner.py`
plays them one after the other. A dialect's folder has its requirements, its stage (the server), its judgements and a
small correct client, which can be made wrong in one way at a time.
"""
