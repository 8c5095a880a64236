"""A gigabyte of which no part is taken twice: novels, RFCs and C files in turns of a megabyte, cut at lines.

python results/superbpe/mix.py NOVELS RFC LINUX OUTPUT
"""

import sys
from pathlib import Path

SHARES = (77, 495, 428)
"""How many megabytes of each are taken, in turns that keep to this proportion."""
TURN, WHOLE = 1 << 20, 10**9

*sources, output = map(Path, sys.argv[1:])
taken, written = [0] * len(SHARES), 0
files = [source.open("rb") for source in sources]
with output.open("wb") as mixed:
    while written < WHOLE:
        turn = min(range(len(SHARES)), key=lambda number: taken[number] / SHARES[number])
        block = files[turn].read(TURN) + files[turn].readline()
        if not block:
            sys.exit(f"{sources[turn]} has too little text")
        taken[turn] += len(block)
        # Some RFCs are no UTF-8.
        written += mixed.write(block.decode("utf-8", "replace").encode())
