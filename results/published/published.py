"""The published programs as a table, or their figures and claims beside records of ours, in
Markdown.

python results/published/published.py                     which variant each program is here
python results/published/published.py results/series      theirs beside ours, and which claims hold
python results/published/published.py results/series --part 8    the same for one part

With records the exit code is 0 if each claim that can be judged holds or is marked as refuted in
claims.yaml, 20 if another is refuted, 22 if none can be judged.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from harness.common.units import seconds_text
from harness.results.frame import frame_of
from harness.results.rows import rows
from harness.results.selection import records_of

FOLDER = Path(__file__).resolve().parent
MERGING = ("convert", "init", "copy", "max", "update", "other")
"""The phases that `merge` sums: all but reading and counting."""
SHOWN = ("merge", "max", "update")
TASK = (
    "data_sha256",
    "vocab_size",
    "pattern",
    "special_tokens",
    "errors",
    "tie_break",
    "min_count",
    "host",
)
REFUTED, NOT_JUDGED = 20, 22
KNOWN = "refuted here"
"""The verdict on a claim that fails here for a reason that claims.yaml states."""

Entry = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", metavar="FOLDER")
    parser.add_argument("--part", type=int)
    options = parser.parse_args(arguments)

    programs = {entry["program"]: entry for entry in read("series.yaml")["programs"]}
    if not options.paths:
        print_table(*programs_table(programs))
        return 0

    claims = read("claims.yaml")["claims"]
    shown = programs
    if options.part is not None:
        shown = {name: one for name, one in programs.items() if one["part"] == options.part}
        claims = [claim for claim in claims if part_of(claim, programs) == options.part]

    rows = rows_of(options.paths)
    trained = [row for row in rows if row["status"] == "ok" and row["cell"] == "train"]
    judged = [judge(claim, programs, trained) for claim in claims]
    print_table(*figures_table(shown, trained))
    if judged:
        print_table(*claims_table(judged))
        sys.stdout.writelines(f"- {explain(judgement)}\n" for judgement in judged)

    verdicts = {judgement["verdict"] for judgement in judged}
    if "refuted" in verdicts:
        return REFUTED
    is_judged = not claims or verdicts & {"held", KNOWN}
    return 0 if is_judged else NOT_JUDGED


def part_of(claim: Entry, programs: dict[str, Entry]) -> int:
    """Return the part whose idea the claim is about: the later of its two programs' parts."""
    return max(programs[claim[side]]["part"] for side in ("slow", "fast"))


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def rows_of(paths: Sequence[str]) -> list[Entry]:
    """Return the rows of the table of these records."""
    frame = frame_of(rows(records_of(paths)))
    listed: list[Entry] = json.loads(frame.to_json(orient="records", double_precision=15))
    return listed


def is_measured_by(program: Entry, row: Entry) -> bool:
    """Return whether the row shows the program: its variant with its parameters.

    Any number of threads or processes above 1 will do; the author's machine had 64 CPUs.
    """
    found = json.loads(row["params"])
    pairs = [(value, found.get(name)) for name, value in program.get("params", {}).items()]
    return row["variant"] == program["variant"] and all(
        a == b or (several(a) and several(b)) for a, b in pairs
    )


def several(value: Any) -> bool:
    return type(value) is int and value > 1


def published(program: Entry, quantity: str, data: str) -> float | None:
    """Return the median of the first figures on that corpus that have the quantity, or what it
    follows from.
    """
    for figures in program.get("figures", []):
        runs = figures.get(quantity)
        if quantity == "merge" and runs is None and "total" in figures:
            counted = (
                [0] * len(figures["total"])
                if program.get("merges_only")
                else figures.get("count", [])
            )
            runs = [total - count for total, count in zip(figures["total"], counted, strict=False)]
        if figures["data"] == data and runs:
            return float(statistics.median(runs))
    return None


def measured(row: Entry, quantity: str) -> float | None:
    """Return a row's seconds of a quantity."""
    if quantity != "merge":
        seconds: float | None = row.get(f"{quantity}_seconds")
        return seconds
    return sum(row.get(f"{phase}_seconds") or 0.0 for phase in MERGING)


def corpora(program: Entry) -> list[str]:
    """Return the corpora that the author measured on, from the small to the large."""
    return list(dict.fromkeys(figures["data"] for figures in program.get("figures", [])))


def ratio(slow: float | None, fast: float | None) -> float | None:
    return slow / fast if slow is not None and fast else None


def judge(claim: Entry, programs: dict[str, Entry], rows: Sequence[Entry]) -> Entry:
    """Return the claim with both ratios, the verdict, and the first two rows of one task that show
    its programs.
    """
    quantity, fast_quantity = claim["quantity"], claim.get("fast_quantity", claim["quantity"])
    slow, fast = programs[claim["slow"]], programs[claim["fast"]]
    if "slow_variant" in claim:
        slow = {**slow, "variant": claim["slow_variant"], "params": {}}
    theirs = (
        ratio(published(slow, quantity, data), published(fast, fast_quantity, data))
        for data in corpora(slow)[::-1]
    )
    judged = {
        **claim,
        "fast_quantity": fast_quantity,
        "theirs": next(filter(None, theirs), None),
        "rows": (),
    }
    judged |= {
        "ours": None,
        "verdict": "not measured",
        "variants": (slow["variant"], fast["variant"]),
    }
    for one, other in pairs(slow, fast, rows):
        if ours := ratio(measured(one, quantity), measured(other, fast_quantity)):
            return {
                **judged,
                "rows": (one, other),
                "ours": ours,
                "verdict": verdict(ours, claim),
            }
    return judged


def pairs(slow: Entry, fast: Entry, rows: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield the rows of both programs that were measured in one task on one machine."""
    for one in filter(lambda row: is_measured_by(slow, row), rows):
        for other in filter(lambda row: is_measured_by(fast, row), rows):
            if all(one[name] == other[name] for name in TASK):
                yield one, other


def verdict(ours: float, claim: Entry) -> str:
    if ours >= claim["factor"]:
        return "held"
    return KNOWN if "refuted" in claim else "refuted"


def explain(judged: Entry) -> str:
    if not judged["rows"]:
        return f"{judged['says']}: not measured, no records of {' and '.join(judged['variants'])} in one task."
    quantities = judged["quantity"], judged["fast_quantity"]
    rows = [
        f"{row['variant']} {time_of(measured(row, quantity))} of {quantity} ({row['started'][:16]})"
        for row, quantity in zip(judged["rows"], quantities, strict=True)
    ]
    reason = judged["refuted"] if judged["verdict"] == KNOWN else judged["because"]
    return f"{judged['says']}: {judged['verdict']} by {', '.join(rows)}. {' '.join(reason.split())}"


def figures_table(
    programs: dict[str, Entry], rows: Sequence[Entry]
) -> tuple[list[str], list[list[str]]]:
    """Return the times of each program that was measured, theirs beside ours, at the largest
    vocabulary that it was measured at.
    """
    head = [
        "program",
        "variant",
        "theirs on",
        *(f"{name}, {whose}" for name in SHOWN for whose in ("theirs", "ours")),
    ]
    lines = []
    for program in programs.values():
        found = [row for row in rows if is_measured_by(program, row)]
        largest = max((row["vocab_size"] for row in found), default=0)
        for data in corpora(program):
            theirs = [published(program, quantity, data) for quantity in SHOWN]
            for row in found:
                if row["vocab_size"] < largest or not any(theirs):
                    continue
                ours = [measured(row, quantity) for quantity in SHOWN]
                both = [
                    time_of(seconds) for pair in zip(theirs, ours, strict=True) for seconds in pair
                ]
                lines.append([program["program"], row["variant"], data, *both])
    return head, lines


def claims_table(judged: Sequence[Entry]) -> tuple[list[str], list[list[str]]]:
    """Return each claim: how many times slower the first is, theirs and ours."""
    head = ["claim", "in", "theirs", "ours", "at least", "verdict"]
    return head, [
        [
            one["says"],
            one["quantity"],
            *map(number, (one["theirs"], one["ours"], one["factor"])),
            one["verdict"],
        ]
        for one in judged
    ]


def programs_table(programs: dict[str, Entry]) -> tuple[list[str], list[list[str]]]:
    """Return each program with the variant that it is here and the author's medians."""
    head = ["program", "part", "variant", "parameters", "published times", "differences"]
    return head, [
        [
            *(
                program["program"],
                str(program["part"]),
                program["variant"],
                parameters(program),
                medians(program),
            ),
            " ".join(program.get("note", "").split()),
        ]
        for program in programs.values()
    ]


def parameters(program: Entry) -> str:
    counting = {"counting": program["counting"]} if "counting" in program else {}
    return ", ".join(
        f"{name}={value}" for name, value in {**program.get("params", {}), **counting}.items()
    )


def medians(program: Entry) -> str:
    quantities = (
        ("merge", "copy", "max", "update") if program.get("merges_only") else ("total", *SHOWN)
    )
    texts = []
    for data in corpora(program):
        seconds = [(quantity, published(program, quantity, data)) for quantity in quantities]
        text = ", ".join(
            f"{quantity} {time_of(value)}" for quantity, value in seconds if value is not None
        )
        texts += [f"{data}: {text}"] if text else []
    return "; ".join(texts)


def time_of(seconds: float | None) -> str:
    return "-" if seconds is None else seconds_text(seconds)


def number(value: float | None) -> str:
    """Return a factor in three figures; a dash if there is none."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def print_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    sys.stdout.writelines(
        f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *lines]
    )
    sys.stdout.write("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
