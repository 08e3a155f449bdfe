"""ZIPs of skills for tests."""

import zipfile
from io import BytesIO

SKILL = "---\nname: csv-tidy\ndescription: Cleans tables.\npreferred_for: [tables]\n---\n# Tidy\nUse the script.\n"
FILES = {
    "SKILL.md": SKILL.encode(), "scripts/tidy.py": b"print('tidy')\n", "resources/template.csv": b"a,b\n",
    "resources/deep/logo.bin": b"\xff\xfe\x00",
}


def skill_text(name: str = "csv-tidy", description: str = "Cleans tables.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nText.\n"


def zipped(files: dict[str, bytes] | None = None, below: str = "") -> bytes:
    """A ZIP of these files, or of a whole skill."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in (FILES if files is None else files).items():
            entry = zipfile.ZipInfo(f"{below}{path}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()


def with_entry(entry: zipfile.ZipInfo, content: bytes = b"x") -> bytes:
    """A skill with one more entry, which may be of any kind."""
    made = BytesIO(zipped())
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr(entry, content)
    return made.getvalue()
