"""The folders of one measured process: fresh for each, its own, and removed with all that was left in them.

What a trainer keeps in its working folder, its home or where temporary files and caches go is gone when the next one
starts, so that nothing is answered from a file of an earlier run. Who writes elsewhere on purpose is not kept from it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

from harness.common.files import CACHE_VARIABLE, cache_folder, remove_tree, temporary_folder

PACKAGES = Path(__file__).resolve().parent.parent.parent
MAKES_TABLES = "variants.counting.character_classes"
PLACES = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "TMP": "tmp",
    "TEMP": "tmp",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
    CACHE_VARIABLE: "harness",
}
WORKING = "work"
CHARACTER_CLASSES = "character-classes-*.bin"


class PrivateFolders:
    """Fresh folders, as a context; the working one shows by links what lies in the current folder."""

    def __enter__(self) -> PrivateFolders:
        self.opened = temporary_folder()
        self.path = self.opened.__enter__()
        for name in {*PLACES.values(), WORKING}:
            (self.path / name).mkdir(mode=0o700)
        with contextlib.suppress(OSError):  # one that cannot be listed is not shown
            for name in os.listdir():  # noqa: PTH208 - names are all that is needed
                (self.path / WORKING / name).symlink_to(Path.cwd() / name)
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.__exit__(None, None, None)

    @property
    def working(self) -> str:
        return str(self.path / WORKING)

    def environment(self) -> dict[str, str]:
        """The variables that say where they are; packages that a user has installed for himself are still found."""
        places = {variable: str(self.path / name) for variable, name in PLACES.items()}
        own = os.environ.get("PYTHONUSERBASE") or site.getuserbase()
        return {**places, "PYTHONUSERBASE": own}

    def give_tables(self) -> None:
        """Lay the kept tables of Unicode's classes ready, so that no process has to make them anew."""
        for kept in cache_folder().glob(CHARACTER_CLASSES):
            with contextlib.suppress(OSError):  # another process is replacing it: the measured one makes its own
                shutil.copyfile(kept, self.path / PLACES[CACHE_VARIABLE] / kept.name)

    def keep_tables(self) -> None:
        """Have tables made where a process had to make its own; what that made is not taken."""
        made = {path.name for path in (self.path / PLACES[CACHE_VARIABLE]).glob(CHARACTER_CLASSES)}
        if made - {path.name for path in cache_folder().glob(CHARACTER_CLASSES)}:
            subprocess.run([sys.executable, "-m", MAKES_TABLES], cwd=PACKAGES, check=False)


def leave_only(folder: Path, kept: tuple[str, ...]) -> None:
    """Remove everything from a folder but plain files, and the folders named, of which plain files stay."""
    if folder.is_symlink() or not folder.is_dir():
        remove_tree(folder)
        folder.mkdir(parents=True)
    folder.chmod(0o700)
    for entry in list(os.scandir(folder)):
        path = Path(entry.path)
        if entry.is_file(follow_symlinks=False):
            continue
        if entry.is_dir(follow_symlinks=False) and entry.name in kept:
            leave_only(path, ())
        elif entry.is_dir(follow_symlinks=False):
            remove_tree(path)
        else:
            path.unlink()
