"""The tests of servers that die, with servers in processes of their own that are killed (SIGKILL).

They are the tests of this name in `tests/adapters/<dialect>`, whichever dialects there are.
"""

import importlib
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAME = "test_over_the_death_of_the_server"

for path in sorted((ROOT / "tests" / "adapters").rglob("test_*.py")):
    if f"def {NAME}(" in path.read_text(encoding="utf-8"):
        words = path.relative_to(ROOT).with_suffix("").parts
        globals()[f"test_{'_'.join(words[2:])}"] = getattr(importlib.import_module(".".join(words)), NAME)
