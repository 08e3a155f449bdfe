"""Reads values of query strings and paths."""


def parse_whole_number(given: str, max_digits: int = 9) -> int | None:
    """The number that these ASCII digits are; None for anything else, and for more digits than allowed."""
    return int(given) if given.isascii() and given.isdigit() and len(given) <= max_digits else None
