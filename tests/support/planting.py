"""A trainer that leaves code where Python would run it when a later block starts; it needs nothing
but the library.
"""

from __future__ import annotations

import os
import sysconfig
import tempfile
from pathlib import Path

from variants.contract import Merge, WordCounts
from variants.heap import train as honest


def plants_code_for_a_later_start(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Where Python looks for code of the user's own when it starts, as far as that is the process's
    own.
    """
    own = {"userbase": str(Path.home() / ".local")}
    packages = Path(sysconfig.get_path("purelib", "posix_user", own))
    packages.mkdir(parents=True, exist_ok=True)
    code = "import os; os.write(2, b'it was run\\n')\n"
    for folder in (packages, Path.home(), Path.cwd(), Path(tempfile.gettempdir())):
        for name in ("usercustomize.py", "sitecustomize.py", "planted.pth"):
            (folder / name).write_text(code)
    os.write(2, b"planted it\n")
    return honest(word_counts, num_merges)
