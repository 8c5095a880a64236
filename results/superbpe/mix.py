"""Several texts in turns of a megabyte, cut at lines, of which no part is taken twice.

python results/superbpe/mix.py NOVELS RFC LINUX OUTPUT            a gigabyte
python results/superbpe/mix.py --all SOURCE SOURCE... OUTPUT      all of each
"""

import sys
from pathlib import Path

TURN = 1 << 20
everything, names = sys.argv[1] == "--all", [each for each in sys.argv[1:] if each != "--all"]
*sources, output = map(Path, names)
# How much of each is taken, in turns that keep to this proportion.
shares = [source.stat().st_size for source in sources] if everything else [77, 495, 428]
left = sys.maxsize if everything else 10**9
taken = [0] * len(shares)
files = [source.open("rb") for source in sources]
with output.open("wb") as mixed:
    while left > 0:
        turn = min(range(len(shares)), key=lambda number: taken[number] / shares[number])
        block = files[turn].read(TURN) + files[turn].readline()
        if not block and everything:
            break
        if not block:
            sys.exit(f"{sources[turn]} has too little text")
        taken[turn] += len(block)
        # Some RFCs are no UTF-8.
        left -= mixed.write(block.decode("utf-8", "replace").encode())
