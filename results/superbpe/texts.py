"""The text files of a source package, end to end: what is UTF-8 without a zero byte, each content
once.

python results/superbpe/texts.py PACKAGE.orig.tar.xz OUTPUT
"""

import hashlib
import sys
import tarfile
from pathlib import Path

package, output = map(Path, sys.argv[1:])
known = set()
with tarfile.open(package, "r|*") as files, output.open("wb") as text:
    for file in files:
        content = files.extractfile(file).read() if file.isfile() else b""
        try:
            content.decode()
        except UnicodeDecodeError:
            continue
        digest = hashlib.sha256(content).digest()
        if b"\0" not in content and digest not in known:
            known.add(digest)
            text.write(content)
