"""Secrets are struck out of whatever is recorded, wherever and however they are spelled."""

import base64

import pytest

from conformance.kit.secrets import ENDINGS, Redactor, is_secret_name, spellings

SECRET = 'sk-"live"/ö+0123456789'


SECRETS = ["token", "access_token", "apiKey", "X-Api-Key", "client_secret", "password", "Authorization", "key"]
OTHERS = ["input_tokens", "keyboard", "monkey", "next_page_token", "Idempotency-Key", "tokenizer"]


@pytest.mark.parametrize("name", SECRETS)
def test_these_names_are_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHERS)
def test_these_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_headers_lose_their_secrets() -> None:
    basic = base64.b64encode(b"me:pass-word-1234").decode()
    headers = [
        ("Authorization", f"Bearer {SECRET}"),
        ("Cookie", "a=0123456789; theme=dark"),
        ("Set-Cookie", "sid=abcdef-012345; Path=/; HttpOnly"),
        ("X-Api-Key", "another-key-123"),
        ("Proxy-Authorization", f"Basic {basic}"),
        ("Referer", "http://h/?token=from-an-address-1&a=b"),
        ("Sec-WebSocket-Protocol", "bearer, 0123456789abcdef0123"),
        ("Access-Control-Allow-Credentials", "true"),
        ("X-Request-Id", "req-1"),
    ]
    told = dict(Redactor().headers(headers))
    assert told["Authorization"] == "Bearer [redacted-1]"
    assert told["Cookie"] == "a=[redacted-2]; theme=[redacted-3]"
    assert told["Set-Cookie"] == "sid=[redacted-4]; Path=/; HttpOnly"
    assert told["Sec-WebSocket-Protocol"].startswith("bearer, [redacted-")
    assert told["Referer"].startswith("http://h/?token=[redacted-") and told["Referer"].endswith("&a=b")
    assert (told["Access-Control-Allow-Credentials"], told["X-Request-Id"]) == ("true", "req-1")
    everything = str(told)
    for secret in (SECRET, "0123456789", "abcdef-012345", "another-key-123", basic, "from-an-address-1"):
        assert secret not in everything


def test_a_secret_once_seen_is_struck_out_in_every_spelling() -> None:
    redactor = Redactor()
    redactor.headers([("Authorization", f"Bearer {SECRET}")])
    for form in spellings(SECRET):
        assert redactor.text(f"before {form} after") == "before [redacted-1] after"
    assert redactor.query(f"q={SECRET}") == "q=[redacted-1]"
    assert redactor.path("/share/" + SECRET) == "/share/[redacted-1]"
    assert redactor.data(b"\xff " + SECRET.encode()) == b"\xff [redacted-1]"


def test_a_basic_credential_gives_its_password_away() -> None:
    redactor = Redactor()
    redactor.headers([("Authorization", "Basic " + base64.b64encode(b"me:pass-word-1234").decode())])
    assert "pass-word-1234" not in redactor.text("the password is pass-word-1234")


def test_bodies_lose_what_goes_by_a_secret_name() -> None:
    redactor = Redactor()
    body = '{"n": "n", "api_key": "abc", "in": {"clientSecret" : "x\\"y"}, "input_tokens": 7, "key": "agent.message"}'
    assert redactor.text(body) == (
        '{"n": "n", "api_key": "[redacted-1]", "in": {"clientSecret" : "[redacted-2]"}, '
        '"input_tokens": 7, "key": "agent.message"}'
    )
    assert redactor.text('{"arguments": "{\\"token\\": \\"inner-secret-1\\"}"}').count("inner-secret-1") == 0
    assert redactor.text("a=1&password=hush-hush-1", is_form=True) == "a=1&password=[redacted-4]"


def test_the_same_secret_has_the_same_number_and_masks_stay() -> None:
    redactor = Redactor()
    sent = redactor.text('{"api_key": "examined-0123"}')
    shown = redactor.text('{"api_key": "examined-0123", "other_key": "x"}')
    masked = redactor.text('{"api_key": "***", "token": "", "secret": "sk-...89"}')
    assert sent in shown.replace(', "other_key": "x"', "")
    assert masked == '{"api_key": "***", "token": "", "secret": "sk-...89"}'


def test_environment_values_are_struck_out_and_names_stay() -> None:
    redactor = Redactor()
    assert redactor.text('{"env": {"REGION": "eu", "EMPTY": ""}}') == '{"env": {"REGION": "[redacted-1]", "EMPTY": ""}}'
    told = redactor.text('{"environment_variables": "A=eu;B=two words\\nC="}')
    assert told == '{"environment_variables": "A=[redacted-1];B=[redacted-2]\\nC="}'


def test_socket_io_auth_is_struck_out_whole() -> None:
    redactor = Redactor()
    told = redactor.text('40{"user":"me","anything":"s3cr3t"}', is_sent=True)
    assert told == '40{"user":"[redacted-1]","anything":"[redacted-2]"}'
    assert redactor.text('40{"sid":"abc"}') == '40{"sid":"abc"}'
    packets = '40{"token":"one-two-three-1"}\x1e42["x",{"a":"one-two-three-1"}]'
    assert redactor.text(packets, is_sent=True) == '40{"token":"[redacted-3]"}\x1e42["x",{"a":"[redacted-3]"}]'


def test_short_words_are_not_hunted() -> None:
    redactor = Redactor()
    assert redactor.text('{"password": "hello", "text": "hello"}') == '{"password": "[redacted-1]", "text": "hello"}'


@pytest.mark.parametrize("name", [*ENDINGS, "apiKey", "Plain_Text", "pass-word", "env"])
def test_a_text_that_names_nothing_else_is_searched(name: str) -> None:
    text = '{"env": {"A": "sesame-1"}}' if name == "env" else f'{{"{name}": "sesame-1", "input_tokens": 1}}'
    assert "sesame" not in Redactor().text(text)


@pytest.mark.parametrize(("secret", "told"), [
    ("x", "x is hunter2"), ("hunter", "x is hunter2"),
    ("hunter2", "x is [redacted-1]"), ("is hunter2", "x [redacted-1]"),
])
def test_a_secret_that_somebody_named_is_struck_out_unless_that_blots_the_text(secret: str, told: str) -> None:
    assert Redactor([secret]).text("x is hunter2") == told


def test_the_key_of_the_examiner_has_a_mark_of_its_own() -> None:
    redactor = Redactor(["another-secret-1"], key="the-own-key-1")
    assert redactor.text('the-own-key-1, another-secret-1, {"token": "third-secret-1"}') == (
        '[redacted], [redacted-1], {"token": "[redacted-2]"}')
    assert redactor.text('{"token": "[redacted]"}') == '{"token": "[redacted]"}'


def test_redactors_that_share_their_marks_give_a_secret_the_same_number() -> None:
    marks: dict[str, str] = {}
    first, second = Redactor(marks=marks), Redactor(marks=marks)
    assert first.text('{"token": "one-secret-1"}') == '{"token": "[redacted-1]"}'
    assert second.text('{"token": "two-secret-2"}, one-secret-1') == '{"token": "[redacted-2]"}, one-secret-1'
    assert second.text('{"token": "one-secret-1"}') == '{"token": "[redacted-1]"}'
