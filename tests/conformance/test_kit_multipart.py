"""Forms: what is put in is what a server reads out."""

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from conformance.kit.multipart import Upload, form


async def read(request: web.Request) -> web.Response:
    told = []
    for name, value in (await request.post()).items():
        is_file = isinstance(value, web.FileField)
        told.append([name, [value.filename, value.content_type, value.file.read().hex()] if is_file else value])
    return web.json_response(told)


async def test_a_server_reads_the_fields_and_the_files() -> None:
    app = web.Application()
    app.router.add_post("/", read)
    file = Upload("a b.txt", b"\r\n--x\x00", "text/plain")
    filled = form({"user_id": "somebody ü", "file": file, "e": Upload("e", b"")})
    async with TestClient(TestServer(app)) as client:
        reply = await client.post("/", data=filled.body, headers={"Content-Type": filled.content_type})
        assert await reply.json() == [
            ["user_id", "somebody ü"],
            ["file", ["a b.txt", "text/plain", b"\r\n--x\x00".hex()]],
            ["e", ["e", "application/octet-stream", ""]],
        ]


def test_names_cannot_break_out_of_their_quotes() -> None:
    filled = form({"file": Upload('a"\r\nX: y', b"")})
    assert b'filename="a%22%0D%0AX: y"' in filled.body
