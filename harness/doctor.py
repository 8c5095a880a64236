"""What disturbs timing on this machine, what could be done about it, and what the machine can tell apart.

    python -m harness.doctor               a look, then an A/A run of some seconds
    python -m harness.doctor --no-run      the look alone
    python -m harness.doctor --repeat 30   what thirty pairs can tell apart

An A/A run measures one variant against itself. Whatever differs there is the machine's doing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from rich.console import Console

from harness import run
from harness.common.comparison import FEWEST_BLOCKS, compare, sample_of
from harness.common.console import Parser, terminal_text
from harness.common.errors import OK, UNMEASURED, Refusal, guarded
from harness.common.files import temporary_folder
from harness.common.registry import at_least
from harness.common.units import ratio_text, share_text
from harness.measure.quiet import DISTURBS, UNKNOWN, findings

REPEAT = 20
USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample takes some 100 ms: long enough for a clock, and short enough for many pairs."""
SIGNS = {DISTURBS: "!", UNKNOWN: "?"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = parser().parse_args(argv)
    return guarded(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    at_least("--repeat", options.repeat, FEWEST_BLOCKS)
    console = Console(highlight=False, markup=False)
    found = findings()
    for finding in found:
        what = terminal_text(finding.what)
        console.print(f"{SIGNS.get(finding.state, ' ')} {finding.name:<19}{what}", soft_wrap=True)
        if finding.advice:
            console.print(f"  {'':<19}-> {terminal_text(finding.advice)}", soft_wrap=True)
    bad = sum(finding.state == DISTURBS for finding in found)
    console.print(f"{bad} of {len(found)} disturb timing (!); ? means unavailable", soft_wrap=True)
    if not options.no_run:
        console.print(f"\n{resolution(options.repeat)}", soft_wrap=True)
    return OK


def resolution(repeat: int) -> str:
    """Compare a cell with itself in pairs of runs. Raises Refusal if it could not be measured."""
    with temporary_folder() as folder:
        records = run(*USUAL, repeat=2 * repeat, results=folder)
    name, data = records[0]["variant"], records[0]["data"]["name"]
    for record in records:
        if record["status"] != "ok":
            reason = f"{record['status']}: {record['reason']}"
            raise Refusal(f"{name} could not be compared with itself ({reason})", UNMEASURED)
    samples = [sample._replace(block=sample.block // 2) for sample in map(sample_of, records) if sample is not None]
    milliseconds = 1000 * statistics.median(sample.wall_seconds for sample in samples)
    compared = compare(samples[::2], samples[1::2])
    text = f"A/A run: {name} against itself on {data}, {repeat} pairs of {milliseconds:.0f} ms:"
    if compared is None or compared.low is None or compared.high is None:
        return f"{text} too many were disturbed to say what this machine resolves."
    share = max(compared.high, 1 / compared.low) - 1
    interval = f"{ratio_text(compared.ratio)} ({ratio_text(compared.low)} to {ratio_text(compared.high)})"
    return f"{text} {interval} by {compared.clock} time.\nDo not rank what is within {share_text(share)} of each other."


def parser() -> argparse.ArgumentParser:
    first, _, rest = (__doc__ or "").partition("\n\n")
    described = Parser(
        prog="python -m harness.doctor",
        description=first,
        epilog="examples:\n"
        + rest.replace("\n    ", "\n  ").replace("    ", "  ", 1)
        + "\nexit code: 0; 22 if the A/A run could not be measured; 130 if it was interrupted.",
    )
    described.add_argument("--no-run", action="store_true", help="look only, measure nothing")
    described.add_argument(
        "--repeat", type=int, default=REPEAT, metavar="N", help="how many pairs of runs (default: %(default)s)"
    )
    return described


if __name__ == "__main__":
    sys.exit(main())
