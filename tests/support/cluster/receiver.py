"""A receiver of what is published on channels of Redis."""


class Receiver:
    """Remembers every message, and each time that messages may have been lost."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.missed_at: list[int] = []

    @property
    def messages(self) -> list[bytes]:
        return [message for _, message in self.heard]

    def received(self, channel: str, message: bytes) -> None:
        self.heard.append((channel, message))

    def missed(self) -> None:
        self.missed_at.append(len(self.heard))
