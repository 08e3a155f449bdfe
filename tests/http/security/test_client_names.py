"""Clients are named by the program of their requests."""

import pytest

from gateway.http import client_name

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"


@pytest.mark.parametrize(("user_agent", "name"), [
    ("curl/8.5.0", "curl/8.5.0"),
    ("Python/3.11 aiohttp/3.14.0", "Python/3.11"),
    (CHROME, "Chrome/126"),
    (f"{CHROME} Edg/126.0.0.0", "Edg/126"),
    ("Mozilla/5.0 (X11; rv:127.0) Gecko/20100101 Firefox/127.0", "Firefox/127"),
    ("Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15", "Safari/605"),
    (f"{CHROME[:70]} zenbox/1.4.2 Chrome/120.0 Electron/28.1 Safari/537.36", "zenbox/1.4.2"),
    ("", "(unnamed)"),
    ("\x00\x07", "(unnamed)"),
])
def test_programs(user_agent: str, name: str) -> None:
    assert client_name({"User-Agent": user_agent}) == name


def test_the_version_of_an_sdk_is_part_of_the_name() -> None:
    headers = {"User-Agent": "Async/Python 0.97.0", "X-Stainless-Package-Version": "0.97.0"}
    assert client_name(headers) == "Async/Python 0.97.0"


def test_a_name_is_short() -> None:
    assert len(client_name({"User-Agent": "x" * 10_000})) == 64
