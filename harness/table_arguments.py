"""What `python -m harness.table` can be told, and what does not go together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness.record_arguments import DEFAULT_RESULTS, add_compare_arguments, add_record_arguments

FORMATS = ("terminal", "markdown", "csv", "html")
_ENDINGS = {".md": "markdown", ".csv": "csv", ".html": "html", ".htm": "html"}
_EPILOG = """\
examples:
  python -m harness.table                             the latest run of each cell in results/local
  python -m harness.table mine.jsonl yours/ --work    joined, with the counts of work
  python -m harness.table --format csv > times.csv    raw seconds and bytes
  python -m harness.table --output times.html         a page of its own, or to be put into another
  python -m harness.table --relative-to NAME          ratios, with intervals where there are blocks
  python -m harness.table --pivot variant data --value MB/s
  python -m harness.table --pivot variant threads --relative-to NAME
  python -m harness.table --series --runs             the series' columns, three runs as a/b/c
  python -m harness.table --compare old/ new/         two sets side by side; --unlike host: of two machines

columns, with their units: total and its phases are seconds of wall time, CPU is processor time; spread is the longest
total less the shortest, by their median; memory is the peak, in decimal units; MB/s are millions of bytes of the
corpus by total; merges/s are merges by all seconds but those of read and count. A ratio is the median of those within
blocks, of CPU seconds where both rows ran one thread, else of wall seconds; its interval holds it with 95 %
confidence.
Of a mismatch no time is shown, but the first merge that is wrong; >9 h is the least that a run which a limit ended
would have taken; timeout, skipped and the other ends stand by their names. Below the table each is explained; in CSV
they are the columns status, reason, first_divergence and extrapolated_..._seconds.
exit code: 0; 21 if merges are wrong or rows contradict each other; 22 if there is nothing to show; with
--against published also 20 if a claim is refuted, 22 if none could be judged.
"""


def parsed(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    """The arguments; what does not go together ends the program with a sentence."""
    parser = table_parser(prog)
    arguments = parser.parse_args(argv)
    if arguments.format is None:
        ending = arguments.output.suffix.lower() if arguments.output is not None else ""
        arguments.format = _ENDINGS.get(ending, "terminal")
    for asked, others in _APART.items():
        together = [other for other in others if _said(arguments, asked) and _said(arguments, other)]
        if together:
            parser.error(f"--{asked.replace('_', '-')} does not go with --{together[0].replace('_', '-')}")
    for asked, needed in (("value", "pivot"), ("unlike", "compare")):
        if _said(arguments, asked) and not _said(arguments, needed):
            parser.error(f"--{asked} goes with --{needed}")
    if _said(arguments, "compare") and arguments.paths != [DEFAULT_RESULTS]:
        parser.error("--compare takes the two sets itself: --compare LEFT RIGHT")
    arguments.value = arguments.value or "total"
    return arguments


_APART = {
    "compare": ("pivot", "against", "relative_to", "work", "runs", "series", "sort"),
    "pivot": ("against", "work", "runs", "series"),
    "against": ("relative_to", "work", "runs", "series", "sort"),
    "series": ("relative_to", "work"),
}


def _said(arguments: argparse.Namespace, name: str) -> bool:
    return getattr(arguments, name) not in (None, False)


def table_parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Print records as a table. A time is shown only where the merges were right.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_record_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="(default: what --output ends with, else terminal)")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write to this file, whole or not at all (.md, .csv, .html, text)"
    )
    parser.add_argument("--work", action="store_true", help="a second table: how often each variant did what")
    parser.add_argument(
        "--against", choices=["published"], help="the series' figures beside ours, and which of its claims hold"
    )
    parser.add_argument(
        "--relative-to",
        metavar="VARIANT",
        help="a column: how many times the total of that variant; of counters, as fast as those named",
    )
    parser.add_argument("--runs", action="store_true", help="a column: the total of every run, as a/b/c")
    parser.add_argument("--series", action="store_true", help="the columns of the series; with --runs all as a/b/c")
    parser.add_argument(
        "--known-wrong",
        metavar="VARIANTS",
        default="",
        help="those whose merges are known to be wrong: they are shown, and the exit code is that of the others",
    )
    parser.add_argument("--sort", choices=("appearance", "total"), help="the order of rows (default: appearance)")
    parser.add_argument(
        "--pivot",
        nargs=2,
        metavar=("DOWN", "ACROSS"),
        help="one figure of every row, laid out by two fields such as variant, data, threads, vocab_size, params.NAME",
    )
    parser.add_argument(
        "--value", metavar="FIGURE", help="which: total, a phase, memory, MB/s, merges/s, a tally ... (default: total)"
    )
    add_compare_arguments(parser)
    return parser
