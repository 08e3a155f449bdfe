"""ZenFlux's documents over HTTP: what the tree lists can be read, and nothing else."""

from pathlib import Path

from tests.support.dialects.zenflux.client import talking


async def test_the_documentation_of_the_gateway_is_served(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        tree = await client.call("GET", "/docs/structure")
        files = [file for category in tree["categories"] for file in category["files"]]
        assert tree["categories"][0]["id"] == "root"
        assert tree["total_files"] == len(files) > 5
        for file in files:
            shown = await client.call("GET", f"/docs/content/{file['path']}")
            assert (shown["path"], shown["title"]) == (file["path"], file["title"])
            assert shown["content"]


async def test_a_folder_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "mine" / "guides").mkdir(parents=True)
    (tmp_path / "mine" / "guides" / "one.md").write_text("# One\nMore.")
    (tmp_path / "secret.md").write_text("# Secret")
    async with talking(tmp_path, management={"docs": "mine"}) as client:
        tree = await client.call("GET", "/docs/structure")
        assert tree == {"total_files": 1, "categories": [{
            "id": "guides", "name": "guides", "icon": "📚", "description": "",
            "files": [{"name": "one.md", "path": "guides/one.md", "title": "One"}]}]}
        shown = await client.call("GET", "/docs/content/guides/one.md")
        assert shown == {"path": "guides/one.md", "title": "One", "content": "# One\nMore.", "category": "guides"}
        for path in ("../secret.md", "..%2fsecret.md", "guides/%2e%2e/%2e%2e/secret.md", "guides", "nobody.md"):
            assert await client.call("GET", f"/docs/content/{path}", status=404)
