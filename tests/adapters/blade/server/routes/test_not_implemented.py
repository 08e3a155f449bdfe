"""What Blade's pages list and this gateway has not is said to be so."""

from pathlib import Path

import pytest

from tests.support.dialects.blade.rest_server import blade


@pytest.mark.parametrize(("method", "path"), [
    ("POST", "/sessions/x/background-tasks/y/stop"), ("GET", "/skills/scenario-resources"), ("POST", "/solutions"),
    ("GET", "/prod_list"), ("DELETE", "/admin/users/1"), ("GET", "/sessions/x/skill-stats"), ("PUT", "/env/x"),
    ("POST", "/sessions/x/share-file"), ("POST", "/auth/refresh"), ("GET", "/user/profile"),
    ("POST", "/sessions/x/switch-branch"), ("GET", "/skill-store/stats"), ("GET", "/registry/x"),
    ("GET", "/sessions/extra_info/by_task/x"), ("POST", "/published-apps"), ("GET", "/gis/x/state"),
    ("GET", "/payloads/x/annotations"), ("PUT", "/frontend_config/x"), ("POST", "/users/me/reset-computer"),
])
async def test_what_is_not_here_says_so(tmp_path: Path, method: str, path: str) -> None:
    async with blade(tmp_path) as client:
        answer = await client.call(method, path)
        assert answer.status == 501
        assert answer.body["detail"].endswith("not part of this gateway")


async def test_what_nobody_lists_is_simply_not_there(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        for path in ("/nonsense", "/envelope", "/sessions/x/nonsense"):
            assert (await client.get(path)).status == 404
