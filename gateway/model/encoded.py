"""An array that is JSON already, value by value: where it is long, nobody has to put it together."""


class Encoded:
    """The values of an array, each of them encoded."""

    __slots__ = ("values",)

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def pieces(self) -> list[bytes]:
        """The array's JSON, to be sent one piece after the other."""
        separated = [piece for value in self.values for piece in (b",", value)]
        return [b"[", *separated[1:], b"]"]
