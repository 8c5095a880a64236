"""What disturbs timing on this machine, what could be done about it, and what the machine can tell
apart.

python -m harness.doctor            a look, then an A/A run of some seconds
python -m harness.doctor --no-run   the look alone

An A/A run measures one variant against itself. Whatever differs there is the machine's doing.

exit code: 0; 22 if the A/A run could not be measured; 130 if it was interrupted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from harness import run
from harness.common.command import Parser, exit_code_of
from harness.common.comparison import compare
from harness.common.errors import OK, UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.printing import print_stdout
from harness.common.units import ratio_text, share_text
from harness.measure.quiet import conditions

USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample takes some 100 ms: long enough for a clock, and short enough for many pairs."""
PAIRS = 20
SIGNS = {True: "!", False: " ", None: "?"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    summary, _, epilog = (__doc__ or "").partition("\n\n")
    parser = Parser(
        prog="python -m harness.doctor", description=summary, epilog=f"examples:\n{epilog}"
    )
    parser.add_argument("--no-run", action="store_true", help="look only, without measuring")
    options = parser.parse_args(argv)
    return exit_code_of(lambda: command(options))


def command(options: argparse.Namespace) -> int:
    found = conditions()
    disturbing = sum(bool(condition.disturbs) for condition in found)
    print_stdout(f"{disturbing} of {len(found)} disturb timing (!); ? means unavailable")
    for condition in found:
        print_stdout(f"{SIGNS[condition.disturbs]} {condition.name:<19}{condition.what}")
        if condition.advice:
            print_stdout(f"  {'':<19}-> {condition.advice}")
    if not options.no_run:
        print_stdout(f"\n{resolution()}")
    return OK


def resolution() -> str:
    """Compare a cell with itself in pairs of runs. Raises Refusal if it could not be measured."""
    with temporary_folder() as folder:
        records = run(*USUAL, repeat=2 * PAIRS, results=folder)

    name, data = records[0].cell.variant, records[0].cell.data.name
    samples = []
    for record in records:
        sample = record.sample
        if record.status != "ok" or sample is None:
            failed = f"{record.status}: {record.measurement.reason}"
            raise Refusal(f"{name} could not be compared with itself ({failed})", UNMEASURED)
        samples.append(sample._replace(block=sample.block // 2))

    milliseconds = 1000 * statistics.median(sample.wall_seconds for sample in samples)
    compared = compare(samples[::2], samples[1::2])
    text = f"A/A run: {name} against itself on {data}, {PAIRS} pairs of {milliseconds:.0f} ms:"
    if compared is None or compared.low is None or compared.high is None:
        return f"{text} too many were disturbed to say what this machine resolves."

    share = max(compared.high, 1 / compared.low) - 1
    interval = (
        f"{ratio_text(compared.ratio)} ({ratio_text(compared.low)} to {ratio_text(compared.high)})"
    )
    return f"{text} {interval} by {compared.clock} time.\nDo not rank what is within {share_text(share)} of each other."


if __name__ == "__main__":
    sys.exit(main())
