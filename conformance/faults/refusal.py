"""How a reference server refuses a request."""


class Refusal(Exception):
    """A request is answered with this status and these words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
