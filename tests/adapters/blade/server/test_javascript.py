"""The published JavaScript client: the session that the docs show, and a chat that is upgraded and breaks."""

from pathlib import Path

from tests.adapters.blade.test_docs import OURS, block
from tests.support.dialects.blade.npm_client import chat, install, run
from tests.support.gateway_server import reachable_from_outside, serving


async def test_the_javascript_client(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"blade": {}}) as served:
        node = await install(tmp_path)
        async with reachable_from_outside(served) as address:
            (tmp_path / "shown.js").write_text(block("javascript").replace(OURS, address))
            code, printed = await run(node, "shown.js", cwd=tmp_path)
        assert (code, printed.splitlines()) == (0, ["user: hello", "assistant: You said: hello", "completed"])
        await chat(served, tmp_path, "polling,websocket", breaks=True)
