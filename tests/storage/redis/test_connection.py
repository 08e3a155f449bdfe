"""Servers behind TLS and behind a socket in a folder: reached, or told why not and what to do about it."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from gateway.storage import StorageUnusable
from gateway.storage.redis import RedisAddress, RedisClient, RedisPubSub
from gateway.storage.redis.connection import unreachable_error
from tests.support.cluster.receiver import Receiver
from tests.support.dialects.aap.client import Client as Aap
from tests.support.free_ports import free_port
from tests.support.gateway_server import serving, until
from tests.support.redis_server import RedisServer


class Secured(RedisServer):
    """A server with TLS on a second port, and a socket in its folder; who signed its certificate is in `ca.pem`."""

    def __init__(self, folder: Path, *names: str, wants_ours: bool = False) -> None:
        folder.mkdir()
        self.authority, self.tls_port, self.socket = trustme.CA(), free_port(), folder / "redis.sock"
        self.authority.cert_pem.write_to_path(folder / "ca.pem")
        self.written(folder / "own", self.authority.issue_cert(*names))
        super().__init__(
            folder, None, "--tls-port", str(self.tls_port), "--tls-cert-file", str(folder / "own.pem"),
            "--tls-key-file", str(folder / "own.key"), "--tls-ca-cert-file", str(folder / "ca.pem"),
            "--tls-auth-clients", "yes" if wants_ours else "no", "--unixsocket", str(self.socket),
        )

    @staticmethod
    def written(file: Path, certificate: trustme.LeafCert) -> None:
        certificate.private_key_pem.write_to_path(file.with_suffix(".key"))
        file.with_suffix(".pem").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))

    def secure(self, query: str = "ssl_ca_certs=ca.pem") -> RedisAddress:
        return RedisAddress.read(f"rediss://:@localhost:{self.tls_port}/0?{query}", self.folder)


Make = Callable[..., Secured]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Make]:
    servers: list[Secured] = []

    def make(*names: str, wants_ours: bool = False) -> Secured:
        servers.append(Secured(tmp_path / "redis", *(names or ("localhost",)), wants_ours=wants_ours))
        servers[-1].start()
        return servers[-1]

    yield make
    for server in servers:
        server.stop(kill=True)


async def why_not(address: RedisAddress) -> str:
    with pytest.raises(StorageUnusable) as told:
        await RedisClient(address).open()
    return told.value.message


async def works(address: RedisAddress) -> None:
    """Something is stored, read again, and heard of elsewhere."""
    redis, receiver = RedisClient(address), Receiver()
    await redis.open()
    listener = RedisPubSub(address, 5)
    await listener.start(receiver, redis.key("news"))
    await redis.publish("news", b"hello")
    await until(lambda: receiver.messages == [b"hello"])
    assert await redis.read_all([("GET", redis.key("format"))]) == [b"1"]
    await listener.close()
    await redis.close()


# -- TLS --------------------------------------------------------------------------------------------------------------

async def test_a_server_behind_tls_is_used_once_its_authority_is_known(made: Make) -> None:
    await works(made().secure())


async def test_an_authority_that_nobody_named_is_not_trusted(made: Make) -> None:
    server = made()
    trustme.CA().cert_pem.write_to_path(server.folder / "other.pem")
    for query in ("", "ssl_ca_certs=other.pem"):
        told = await why_not(server.secure(query))
        assert told.startswith(f"log: Redis at rediss://localhost:{server.tls_port}/0 cannot be reached: its "
                               "certificate is not trusted (")
        assert told.endswith("; name the authority that signed it with `?ssl_ca_certs=FILE` in `log:`")


async def test_a_certificate_for_another_name_is_told(made: Make) -> None:
    server = made("elsewhere.example")
    told = await why_not(server.secure())
    assert "its certificate is for another name (" in told and "'localhost'" in told
    assert told.endswith("; write the name that it was made for in `log:`")
    await works(server.secure("ssl_ca_certs=ca.pem&ssl_check_hostname=no"))


async def test_a_server_may_want_a_certificate_of_ours(made: Make) -> None:
    server = made(wants_ours=True)
    told = await why_not(server.secure())
    assert "name it with `?ssl_certfile=FILE&ssl_keyfile=FILE` in `log:`" in told
    server.written(server.folder / "ours", server.authority.issue_cert("dragoman.example"))
    await works(server.secure("ssl_ca_certs=ca.pem&ssl_certfile=ours.pem&ssl_keyfile=ours.key"))


async def test_a_file_without_certificates_is_told(made: Make) -> None:
    assert "ssl_ca_certs names a file that has none" in await why_not(made().secure("ssl_ca_certs=own.key"))


async def test_tls_on_one_side_only_is_told(made: Make) -> None:
    server = made()
    told = await why_not(RedisAddress.read(f"redis://localhost:{server.tls_port}/0"))
    assert told.endswith("; if it speaks TLS there, write rediss:// in `log:`")
    told = await why_not(RedisAddress.read(f"rediss://localhost:{server.port}/0?ssl_ca_certs={server.folder}/ca.pem"))
    assert told.endswith("it does not answer; start it, or write redis:// in `log:` if it does not speak TLS there")


async def test_what_answers_something_else_does_not_speak_tls() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        told = await why_not(RedisAddress.read(f"rediss://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"))
    assert "it does not speak TLS there (" in told
    assert told.endswith("; write redis:// in `log:`, or the port where it does")


# -- a socket in a folder ---------------------------------------------------------------------------------------------

async def test_a_socket_in_a_folder_is_used(made: Make) -> None:
    server = made()
    await works(RedisAddress.read(f"unix://{server.socket}?db=3"))
    await works(RedisAddress.read(f"unix://{server.socket}"))


async def test_a_socket_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = await why_not(RedisAddress.read(f"unix://{tmp_path}/none.sock"))
    assert told.startswith(f"log: Redis at unix://{tmp_path}/none.sock cannot be reached: ")
    assert "No such file or directory; start it, or name another" in told


# -- a whole server ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("way", ["rediss", "unix"])
async def test_turns_run_on_it_and_are_there_after_a_restart(made: Make, tmp_path: Path, way: str) -> None:
    server = made()
    (tmp_path / "ca.pem").write_bytes((server.folder / "ca.pem").read_bytes())
    log = f"unix://{server.socket}?prefix=mine" if way == "unix" else (
        f"rediss://localhost:{server.tls_port}/0?ssl_ca_certs=ca.pem")
    async with serving(tmp_path, log=log) as served:
        aap = Aap(served)
        session = await aap.session()
        assert (await aap.turn(session, "hello")).text == "You said: hello"
    async with serving(tmp_path, log=log) as served:
        assert [record.seq for record in await served.gateway.runtime.log.read(session)][:2] == [1, 2]


def test_words_that_nobody_knows_are_passed_on() -> None:
    told = unreachable_error("redis://host:1/0", OSError("the cat sat on it."))
    assert told.message == "Redis at redis://host:1/0 cannot be reached: the cat sat on it"
    assert told.hint == "start it, or name another server or log in `log:`"
    assert unreachable_error("unix:///x", TimeoutError()).message.endswith("it does not answer")
