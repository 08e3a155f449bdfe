"""The examination of clients: a scripted server plays situations, and the suite judges what the client sends.

`suite.py` finds what belongs to a dialect; `situations.py` has the situations that all dialects can play; `runner.py`
plays them one after the other. A dialect's folder has its requirements, its scripted server, its judgements and a
small correct client, which can be made wrong in one way at a time.
"""
