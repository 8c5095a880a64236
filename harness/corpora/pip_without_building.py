"""pip, kept from running anything: python -m harness.corpora.pip_without_building FOLDER download ...

`pip download` of a source distribution goes on to build the package's metadata, which runs the package's own code. Here
no process may be started; when pip tries to, the archive has come, lies in FOLDER, and that is all that is wanted.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"}
ARCHIVES = ("*.tar.gz", "*.zip", "*.tar.bz2", "*.tar.xz")


def main(folder: Path, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        tempfile.tempdir = inner  # where pip keeps what it downloads

        def forbid(event: str, _: Any) -> None:
            if event not in STARTS:
                return
            for archive in (path for kind in ARCHIVES for path in Path(inner).glob(f"*/{kind}")):
                archive.replace(folder / archive.name)
                shutil.rmtree(inner)
                os._exit(0)
            # Of what pip asks other programs before that, nothing is needed.
            raise PermissionError("nothing is run for a download")

        sys.addaudithook(forbid)
        sys.argv = ["pip", *arguments]
        runpy.run_module("pip", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
