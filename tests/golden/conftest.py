"""The option with which transcripts are recorded anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the golden transcripts anew")
