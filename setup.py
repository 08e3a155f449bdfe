"""What pyproject.toml cannot say: the pages of docs/ go into the wheel, as gateway/docs."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py

PAGES = sorted(path for pattern in ("*.md", "*.svg") for path in Path("docs").glob(pattern))


class BuildWithPages(build_py):
    """Copies the packages, and the pages that a server without a checkout offers to its clients."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            home = Path(self.build_lib, "gateway", "docs")
            home.mkdir(parents=True, exist_ok=True)
            for page in PAGES:
                copy2(page, home)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        pages = [] if self.editable_mode else [str(Path(self.build_lib, "gateway", page)) for page in PAGES]
        return [*super().get_outputs(include_bytecode), *pages]


setup(cmdclass={"build_py": BuildWithPages})
