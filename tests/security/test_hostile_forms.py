"""A form cannot keep the server busy: lines outside of its parts are counted."""

from io import BytesIO
from pathlib import Path

import pytest

from gateway.http.file_transfer import MAX_LINES
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import serving

ROUTES = ["/api/sessions/import", "/api/v1/cloud/files", "/api/v1/files/upload"]


@pytest.mark.parametrize("body", [
    b"\n" * (MAX_LINES + 1),
    b"\r\n" * MAX_LINES + b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n',
])
async def test_lines_that_belong_to_no_part_are_counted(tmp_path: Path, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    async with serving(tmp_path, dialects={name: {} for name in DIALECTS}) as served:
        for route in ROUTES:
            async with served.http.post(served.url(route), data=BytesIO(body), headers=headers) as response:
                assert response.status == 400
                assert f"more than {MAX_LINES} lines" in await response.text()
