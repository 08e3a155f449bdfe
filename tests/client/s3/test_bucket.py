"""A bucket on a real S3-compatible server: objects are stored whole, or not at all, and misbehaviour is an error."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from email.message import Message
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from gateway.bucket_location import BucketLocation
from gateway.client.s3 import Bucket, CredentialSource
from gateway.client.s3 import bucket as module
from gateway.errors import FilesUnavailable, NotFound
from gateway.ports import ByteStore, DownloadHeaders
from tests.support.client.forward_proxy import forward_proxy
from tests.support.s3.server import S3Server, s3_server

NAMES = ("a", "a b/c+d.txt", "ü/ş ~*'()!&=%2F;:@,$.bin", "x\ufffey")


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
async def bucket(server: S3Server) -> AsyncIterator[Bucket]:
    made = connected(server)
    yield made
    await made.close()


def connected(server: S3Server, address: str = "s3://agents/some/where") -> Bucket:
    location = BucketLocation.read(address, server.environ)
    return Bucket(location, CredentialSource(server.environ, lambda: 1_800_000_000.0), lambda: 1_800_000_000.0)


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(store: ByteStore, name: str, start: int = 0, end: int | None = None) -> bytes:
    file = await store.open(name)
    return b"".join([chunk async for chunk in file.read(start, file.size if end is None else end)])


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_read_listed_copied_and_removed(bucket: Bucket, server: S3Server, name: str) -> None:
    await bucket.put(name, pieces(b"he", b"", b"llo"))
    assert server.objects() == {f"some/where/{name}": b"hello"}
    assert (await read(bucket, name), await read(bucket, name, 1, 3)) == (b"hello", b"el")
    assert [(one.name, one.size) for one in await bucket.list("")] == [(name, 5)]
    await bucket.copy(name, "copy")
    assert await read(bucket, "copy") == b"hello"
    await bucket.remove(name)
    await bucket.remove(name)
    with pytest.raises(NotFound):
        await bucket.open(name)
    assert [one.name for one in await bucket.list("")] == ["copy"]


async def test_a_bucket_behind_the_companys_proxy_is_used_as_ever(
    server: S3Server, monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.url = server.url.replace("127.0.0.1", "store")
    async with forward_proxy(monkeypatch, "dragon:s3cret-pass") as proxy:
        bucket = connected(server)
        await bucket.put("a", pieces(b"hello"))
        assert await read(bucket, "a", 1, 3) == b"el"
        await bucket.close()
    assert server.objects() == {"some/where/a": b"hello"}
    assert proxy.asked and all(f" {server.url}/agents/some/where/a" in line for line in proxy.asked)


async def test_a_file_without_bytes_is_a_file(bucket: Bucket) -> None:
    await bucket.put("empty", pieces())
    assert await read(bucket, "empty") == b""


async def test_a_large_file_goes_in_parts_and_comes_back_whole(
    bucket: Bucket, server: S3Server, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 5 * 1024 * 1024)
    whole = bytes(range(256)) * 50_000
    await bucket.put("large", pieces(*(whole[at:at + 999_999] for at in range(0, len(whole), 999_999))))
    assert await read(bucket, "large") == whole
    assert sum("partNumber" in path for _, path in server.asked) == 3
    assert server.uploads() == 0


async def test_a_list_has_more_than_one_page(
    bucket: Bucket, server: S3Server, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    for number in range(3):
        await bucket.put(f"p/{number}", pieces(b"x"))
    await bucket.put("q", pieces(b"x"))
    assert [one.name for one in await bucket.list("p/")] == ["p/0", "p/1", "p/2"]
    assert any("continuation-token" in path for _, path in server.asked)


@pytest.mark.parametrize("sizes", [(4,), (6 * 1024 * 1024, 6 * 1024 * 1024)])
async def test_a_sender_that_breaks_off_leaves_nothing(
    bucket: Bucket, server: S3Server, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...],
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 5 * 1024 * 1024)

    async def broken() -> AsyncIterator[bytes]:
        for size in sizes:
            yield b"x" * size
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await bucket.put("a", broken())
    assert (server.objects(), server.uploads()) == ({}, 0)


async def test_a_refusal_is_an_error_without_the_words_of_the_store(bucket: Bucket, server: S3Server) -> None:
    server.refuse = lambda method, path: "403 AccessDenied" if method == "PUT" else None
    with pytest.raises(FilesUnavailable, match="stored or removed just now") as caught:
        await bucket.put("a", pieces(b"x"))
    assert "AccessDenied" not in caught.value.message
    assert server.objects() == {}


async def test_a_store_that_is_busy_for_a_moment_is_asked_again(bucket: Bucket, server: S3Server) -> None:
    answers = iter(["503 SlowDown", "500 InternalError"])
    server.refuse = lambda method, path: next(answers, None)
    await bucket.put("a", pieces(b"x"))
    assert await read(bucket, "a") == b"x"


async def test_a_refused_part_aborts_the_upload(
    bucket: Bucket, server: S3Server, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 5 * 1024 * 1024)
    server.refuse = lambda method, path: "403 AccessDenied" if "partNumber=2" in path else None
    with pytest.raises(FilesUnavailable):
        await bucket.put("a", pieces(b"x" * 6_000_000, b"x" * 6_000_000))
    assert (server.objects(), server.uploads()) == ({}, 0)


async def test_a_store_that_confirms_and_does_nothing_is_found_out(bucket: Bucket, server: S3Server) -> None:
    server.lie = lambda method, path: True
    with pytest.raises(FilesUnavailable, match="confirmed a file that it does not have"):
        await bucket.put("a", pieces(b"x"))


async def test_a_bucket_that_is_not_there_is_no_missing_file(server: S3Server) -> None:
    stranger = connected(server, "s3://nowhere")
    with pytest.raises(FilesUnavailable):
        await stranger.put("a", pieces(b"x"))
    with pytest.raises(FilesUnavailable):
        await stranger.list("")
    await stranger.close()


async def test_a_wrong_secret_is_refused(server: S3Server) -> None:
    environ = {**server.environ, "AWS_SECRET_ACCESS_KEY": "wrong"}
    stranger = Bucket(BucketLocation.read("s3://agents", environ), CredentialSource(environ, lambda: 0.0), lambda: 0.0)
    with pytest.raises(FilesUnavailable):
        await stranger.put("a", pieces(b"x"))
    await stranger.close()


async def test_the_check_says_what_is_wrong_in_the_words_of_the_store(bucket: Bucket, server: S3Server) -> None:
    await bucket.check()
    assert server.objects() == {}
    server.refuse = lambda method, path: "403 AccessDenied" if method == "PUT" else None
    with pytest.raises(Exception, match="AccessDenied: so it is"):
        await bucket.check()


async def test_a_direct_link_is_one_that_the_store_accepts(server: S3Server, bucket: Bucket) -> None:
    headers = DownloadHeaders(content_type="text/plain", content_disposition="attachment; filename=\"a b.txt\"")
    assert await bucket.direct_url("a b", headers, 60) is None, "it was not asked for"
    direct = connected(server, "s3://agents?links=direct")
    await direct.put("a b", pieces(b"hello"))
    url = await direct.direct_url("a b", headers, 60)
    assert url is not None
    status, sent, body = await asyncio.to_thread(fetched, url)
    assert (status, body, sent["Content-Type"]) == (200, b"hello", "text/plain")
    assert sent["Content-Disposition"] == headers.content_disposition
    status, _, _ = await asyncio.to_thread(fetched, url.replace("a%20b", "c"))
    assert status == 403
    await direct.close()


def fetched(url: str) -> tuple[int, Message, bytes]:
    try:
        with urlopen(url) as response:  # a server of this test
            return response.status, response.headers, response.read()
    except HTTPError as error:
        return error.code, error.headers, error.read()
