"""Signatures are those of the examples that Amazon publishes; the S3 server of other tests checks all the rest."""

from hashlib import sha256

from yarl import URL

from gateway.client.s3 import Credentials, presigned_url, signed_headers

KEY = Credentials(key_id="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")  # published
AT = 1369353600.0
HOST = "https://examplebucket.s3.amazonaws.com"
EMPTY = sha256(b"").hexdigest()


def signature(url: str, **headers: str) -> str:
    made = signed_headers("GET", URL(url, encoded=True), headers, EMPTY, KEY, "us-east-1", AT)
    return made["authorization"].rpartition("Signature=")[2]


def test_headers_are_signed() -> None:
    assert signature(f"{HOST}/test.txt", Range="bytes=0-9") == (
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    assert signature(f"{HOST}/?max-keys=2&prefix=J") == (
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


def test_a_url_is_signed() -> None:
    made = presigned_url(URL(f"{HOST}/test.txt"), {}, KEY, "us-east-1", AT, 86400)
    assert made.query["X-Amz-Signature"] == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"


def test_a_session_token_is_signed_with_the_rest() -> None:
    who = Credentials(key_id="k", secret="s", token="t")  # of nobody
    made = signed_headers("GET", URL(f"{HOST}/"), {}, EMPTY, who, "us-east-1", AT)
    assert made["x-amz-security-token"] == "t"
    assert "x-amz-security-token" in made["authorization"]
    assert presigned_url(URL(f"{HOST}/a"), {}, who, "us-east-1", AT, 60).query["X-Amz-Security-Token"] == "t"


def test_no_secret_is_shown() -> None:
    assert "wJalr" not in repr(KEY)
