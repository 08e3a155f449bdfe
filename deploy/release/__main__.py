"""`python -m deploy.release`: dist (artefacts), lock (constraints.txt), next (the next version); `make` calls it."""

import argparse
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from .artefacts import EXTRAS, LOCKED, SHIPPED, build, commit_time, write_checksums, write_requirements
from .sbom import bill_of_materials, pinned_versions
from .version import Refused, plan

ROOT = Path(__file__).resolve().parents[2]
COMPILE = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header",
           "--no-emit-index-url", "--no-emit-find-links", "--quiet")
HEADERS = {
    LOCKED: "# What the tests run with, on every system and every Python; `make lock` renews it.\n",
    SHIPPED: f"# What users install beside the wheel, with the extras {EXTRAS}; `make lock` renews it.\n",
}


def main() -> None:
    asked = _parser().parse_args()
    if asked.command == "dist":
        dist(asked.root, asked.out)
    elif asked.command == "lock":
        lock(asked.root)
    else:
        next_version(asked.root, asked.version, asked.dry_run)


def dist(root: Path, out: Path) -> None:
    """Put wheel, sdist, requirements, bill of materials and checksums into the folder, and print their names."""
    when = commit_time(root)
    wheel, sdist = build(root, out, when)
    sbom = out / f"{sdist.name.removesuffix('.tar.gz')}.cdx.json"
    sbom.write_text(bill_of_materials(root, wheel, when))
    files = [wheel, sdist, sbom, write_requirements(root, out, wheel)]
    for file in (*files, write_checksums(out, files)):
        print(file)


def lock(root: Path) -> None:
    """Pin the newest versions that pyproject.toml allows, with the hashes of all files; users get a part of them."""
    extras = [f"--extra={extra}" for extra in EXTRAS.split(",")]
    for name, options in {LOCKED: ["--upgrade", "--all-extras"], SHIPPED: ["--constraint", LOCKED, *extras]}.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", *COMPILE, *options, "pyproject.toml"]
        done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
        (root / name).write_text(HEADERS[name] + done.stdout)
        print(f"{name} pins {len(pinned_versions(done.stdout))} packages")


def next_version(root: Path, version: str, is_dry: bool) -> None:
    """Write the version and its section of the changelog, and print the commands that publish it."""
    try:
        made = plan(root, version, _today())
    except Refused as refused:
        sys.exit(f"no release was made:\n{refused}")
    for name, text in made.files.items():
        print(f"{'would write' if is_dry else 'wrote'} {name}")
        if not is_dry:
            (root / name).write_text(text)
    print("\nthen, after a look at the difference:", *made.commands, sep="\n  ")


def _today() -> date:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(given), UTC).date() if given else datetime.now(UTC).date()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("dist", help="build wheel, sdist, bill of materials and checksums")
    made.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder for them")
    commands.add_parser("lock", help="renew constraints.txt")
    following = commands.add_parser("next", help="write the next version into the files that name it")
    following.add_argument("version")
    following.add_argument("--dry-run", action="store_true", help="only say what would be done")
    return parser


if __name__ == "__main__":
    main()
