"""`make docs`: makes a site of all pages, in site/, and reports every link that leads nowhere.

mkdocs builds the site from a copy of the pages and of the files that they link to. The copy is laid out as the project
is, so that links need not be changed.
"""

import argparse
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = "docs/mkdocs.yml"
PAGES = ("*.md", "config.yaml", "LICENSE", "docs/*.md", "docs/*.svg", "docs/img/*", "examples/**/*", "deploy/**/*",
         "mappings/*.yaml", "mappings/*.json", "action.yml")
"""What pages are, and what they link to."""


class Links(HTMLParser):
    """The links, pictures and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := named.get(key))}
        self.targets += [value for key in ("href", "src") if (value := named.get(key))]


def copy_pages(root: Path, folder: Path) -> None:
    """Copy the pages, and the files that they link to."""
    for pattern in PAGES:
        for file in root.glob(pattern):
            if file.is_file() and "__pycache__" not in file.parts:
                target = folder / file.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


def broken_links(site: Path) -> list[str]:
    """Every link of the site to a page, a file or an anchor that is not there."""
    pages = {page: Links(page.read_text("utf-8")) for page in sorted(site.rglob("*.html"))}
    found = []
    for page, links in pages.items():
        for link in links.targets:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (page.name == "404.html" and site != page.parent):
                continue
            base = site if parts.path.startswith("/") else page.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors)
            if not is_there:
                found.append(f"{page.relative_to(site)} links to {link}")
    return found


def build(root: Path, site: Path) -> int:
    """Build the site; the exit code."""
    with TemporaryDirectory(prefix="dragoman-docs-") as folder:
        pages = Path(folder) / "pages"
        copy_pages(root, pages)
        settings = Path(folder) / "mkdocs.yml"
        settings.write_text((root / SETTINGS).read_text("utf-8") + f"docs_dir: {pages}\nsite_dir: {site}\n")
        words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--config-file", str(settings)]
        if code := subprocess.run(words, check=False).returncode:
            return code
    found = broken_links(site)
    print(*found, f"{site}: {len(list(site.rglob('*.html')))} pages, {len(found)} broken links", sep="\n")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder of the site (site)")
    return build(ROOT, parser.parse_args().out.absolute())


if __name__ == "__main__":
    sys.exit(main())
