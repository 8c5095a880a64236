"""How often the gate is wrong: a program against itself, planted slow-downs, and trainers that
fail.

    python results/gate_self_test/self_test.py
        the tables of README.md, from its records
    python results/gate_self_test/self_test.py --set time.confirm.max_slowdown=0.03
        the same under another threshold
    python results/gate_self_test/self_test.py --cards
        how often the cards quick and usual find a slow-down, from the same records
    python results/gate_self_test/self_test.py --blocks 1200 results/local/gate_rates
        1,200 blocks of every kind, and the tables of their rates
    python results/gate_self_test/self_test.py --measure 10 results/local/gate_self_test
        ten runs of the whole gate on each planted trainer, and their exit codes

`--busy` measures beside processes that take the CPUs.

Exit code: 1 if a rate certainly misses its aim. An interrupted measurement continues with the same
command.
"""

import argparse
import contextlib
import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import structs
from scipy.stats import binomtest

from harness.common.units import share_text
from harness.gate.rule import TimeRule, decide, merged_card, read_gate_card
from harness.records.file import Record
from harness.records.schema import Cell, Data, Measurement, Run

FOLDER = Path(__file__).parent
CONDITIONS = {
    "quiet": "nothing",
    "busy": "none to three busy processes",
    "quiet_net": "nothing; net time",
    "busy_net": "tests and builds; net time",
}
KINDS = {"same": 400, "+1%": 100, "+2%": 100, "+5%": 100, "5% wait": 100, "50 ms wait": 100}
TRAINERS = {
    "base": "base",
    "again": "again",
    "same": "same",
    "+1%": "slower_1",
    "+2%": "slower_2",
    "+5%": "slower_5",
    "5% wait": "waits_5",
    "50 ms wait": "waits_50_ms",
}
"""The trainer of planted.py for each kind."""
FOUND = (0.99, 1.0)
AIMS = {
    "same": (0.0, 0.01),
    "+1%": (0.0, 0.05),
    "+5%": FOUND,
    "5% wait": FOUND,
    "50 ms wait": FOUND,
}
"""Between which rates the gate should report a regression."""
STARTED = "2026-11-22T04:22:11+00:00"
RUN = Run(run=STARTED, schema=2)
CELL = Cell(
    run=STARTED, cell=0, role="train", variant="heap", counting="given", data=Data(), threads=1
)
"""Of every record that is made of a stored block."""
SMALL = ("data=random_text", "data.source.seed=7", "vocab_size=275", "data.source.bytes=300")
EXIT_CODES = {
    "same": 0,
    "slower_5": 20,
    "waits_5": 20,
    "waits_50_ms": 20,
    "corrupted": 21,
    "crash": 22,
    "hang": 22,
    "hog": 22,
}
"""The gate's exit code for each trainer of planted.py."""


def runs(
    rule: TimeRule, blocks: list[Any], kind: str, planted: float = 0.0
) -> Iterator[tuple[str, bool]]:
    """Yield the state of each gate run, and whether it looked twice; no block is in two of them."""
    blocks = [block for block in blocks if kind in block]
    start = 0
    while start + rule.triage.blocks <= len(blocks):
        whole = rule.triage.blocks + rule.confirm.blocks
        records: list[Record] = []
        for number, block in enumerate(blocks[start : start + whole]):
            records += records_of(number, block, kind, planted)
        first = [record for record in records if record.measurement.block < rule.triage.blocks]
        decision = decide(rule, first)
        twice = decision.state != "pass"
        if twice:
            if len(blocks) < start + whole:
                return  # too few blocks are left for a second look
            decision = decide(rule, records)
        start += whole if twice else rule.triage.blocks
        yield decision.state, twice


def records_of(number: int, block: dict[str, Any], kind: str, planted: float) -> list[Record]:
    """Return the block of a number as the gate has it, its head slower by a share."""
    records = []
    for program, side in {"base": "base", "again": "again", kind: "head"}.items():
        if program in block:
            factor = 1 + planted * (side == "head")
            wall, cpu, pressure, wait = (*block[program], None)[:4]  # older blocks lack it
            measurement = Measurement(
                run=STARTED,
                cell=0,
                block=number,
                started=STARTED,
                status="ok",
                seconds={"other": factor * wall, "total": factor * wall},
                cpu_seconds=factor * cpu,
                cpu_wait_seconds=None if wait is None else factor * wait,
                disturbance={"psi_cpu_seconds": pressure * factor * wall},
            )
            gate: Any = {"tier": "time", "corpus": "", "comparison": kind, "side": side}
            records.append(Record(RUN, structs.replace(CELL, gate=gate), measurement))
    return records


def show_records(settings: list[str], folder: Path = FOLDER) -> list[str]:
    """Print the tables of the blocks in a folder; return the kinds that miss their aim."""
    card = json.loads((FOLDER / "self_test.json").read_text())["card"]
    rule = merged_card("self_test.json", [card], settings).time
    missed = []
    print(
        "| beside it | runs | of | found slower | rate (95 % interval) | inconclusive | looked at twice |"
    )
    print("|---|---|---:|---:|---|---:|---:|")
    for condition, beside in CONDITIONS.items():
        blocks = read_blocks(folder, condition)
        for kind, most in KINDS.items():
            if sum(kind in block for block in blocks) < rule.triage.blocks + rule.confirm.blocks:
                continue
            states, twice = zip(*islice(runs(rule, blocks, kind), most))
            found, number = states.count("regression"), len(states)
            name = "A/A" if kind == "same" else f"{kind} planted"
            rate, low, high = rate_of(found, number)
            unsure = states.count("inconclusive")
            print(
                f"| {beside} | {name} | {number} | {found} | {rate} | {unsure} | {sum(twice)} |",
                flush=True,
            )
            aim_low, aim_high = AIMS.get(kind, (0.0, 1.0))
            if high < aim_low or low > aim_high:
                missed.append(f"{condition} {kind}")

    lines = (FOLDER / "failures.jsonl").read_text().splitlines()
    faults = Counter(tuple(json.loads(line).values()) for line in lines)
    print("\n| failure | exit code | runs |\n|---|---:|---:|")
    for (fault, code), number in faults.items():
        print(f"| {fault} | {code} | {number} |")
    return missed


def show_cards(folder: Path) -> None:
    """Print how often each card finds a slow-down that is added to the figures of the A/A blocks."""
    rules = {name: read_gate_card(name).time for name in ("quick", "usual")}
    headings = [f"{name}: {state}" for name in rules for state in ("found", "inconclusive")]
    print(f"| beside it | head is slower by | {' | '.join(headings)} |")
    print("|---|---:|" + "---:|" * len(headings))
    for condition, beside in CONDITIONS.items():
        blocks = read_blocks(folder, condition)
        for planted in (0.0, 0.03, 0.05, 0.1) if blocks else ():
            cells = []
            for rule in rules.values():
                states = [state for state, _ in runs(rule, blocks, "same", planted)]
                for state in ("regression", "inconclusive"):
                    share = share_text(states.count(state) / len(states))
                    cells.append(f"{share} of {len(states)}")
            print(f"| {beside} | {share_text(planted)} | {' | '.join(cells)} |")


def read_blocks(folder: Path, condition: str) -> list[dict[str, Any]]:
    """Return the stored blocks of a condition; none if it was not measured."""
    file = folder / f"{condition}.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines()[1:] if file.exists() else []
    return [json.loads(line) for line in lines]


def rate_of(some: int, of: int) -> tuple[str, float, float]:
    ends = binomtest(some, of).proportion_ci(0.95, method="exact")
    return f"{some / of:.0%} ({ends.low:.1%} to {ends.high:.1%})", float(ends.low), float(ends.high)


def measure_blocks(number: int, folder: Path, busy: bool) -> None:
    """Measure blocks of every kind and write them as `quiet_net` or `busy_net`; an interrupted
    measurement continues with the same command.
    """
    import harness

    sys.path.insert(0, str(FOLDER))
    condition = "busy_net" if busy else "quiet_net"
    variants = ",".join(f"planted:{trainer}" for trainer in TRAINERS.values())
    with load_that_comes_and_goes() if busy else contextlib.nullcontext():
        records = harness.run(
            f"variants={variants}", *SMALL, f"repeat={number}", f"results={folder / condition}"
        )

    kinds = {f"planted:{trainer}": kind for kind, trainer in TRAINERS.items()}
    blocks: list[dict[str, Any]] = [{"block": block} for block in range(number)]
    for record in records:
        sample = record.sample
        if sample is not None:
            clocks = (sample.wall_seconds, sample.cpu_seconds, sample.pressure)
            blocks[sample.block][kinds[record["variant"]]] = [*clocks, sample.cpu_wait_seconds]
    head = {"kind": "gate_self_test", "condition": condition, "host": records[0]["host"]}
    lines = [json.dumps(line) for line in (head, *blocks)]
    path = folder / f"{condition}.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def measure(number: int, folder: Path, busy: bool) -> list[str]:
    """Run the whole gate `number` times on each planted trainer; return those with another exit
    code than theirs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.jsonl"
    ended = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for name, right in EXIT_CODES.items():
        for place in range(sum(run["trainer"] == name for run in ended), number):
            with three_busy_processes() if busy else contextlib.nullcontext():
                code = gate(name, folder / "gate", right in (0, 20))
            ended.append({"trainer": name, "busy": busy, "exit_code": code})
            with file.open("a") as lines:
                lines.write(json.dumps(ended[-1]) + "\n")
            print(f"{name} {place + 1} of {number}: exit code {code}", flush=True)
    return [run["trainer"] for run in ended if run["exit_code"] != EXIT_CODES[run["trainer"]]]


def gate(name: str, output: Path, timed: bool) -> int:
    command = [sys.executable, "-m", "harness.gate", f"planted:{name}", "--output", str(output)]
    command += ["--tiers", "time" if timed else "identity"]
    command += ["--against-variant", "planted:base"] if timed else ["--no-base"]
    for setting in (
        f"time.overrides=[{','.join(SMALL)}]",
        "limits.memory=200MB",
        "limits.wall=5",
    ):
        command += ["--set", setting]
    paths = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        command, env=environment, check=False, stdout=subprocess.DEVNULL
    ).returncode


BUSY = "while True: pass"
BUSY_AT_TIMES = """
import random, time
while True:
    until = time.monotonic() + random.uniform(1, 20)
    while time.monotonic() < until:
        pass
    time.sleep(random.uniform(1, 20))
"""


def load_that_comes_and_goes() -> contextlib.AbstractContextManager[None]:
    return three_busy_processes(BUSY_AT_TIMES)


@contextlib.contextmanager
def three_busy_processes(program: str = BUSY) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measure", type=int, metavar="RUNS")
    parser.add_argument("--cards", action="store_true")
    parser.add_argument("--blocks", type=int, metavar="BLOCKS")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("results", "local", "gate_self_test")
    )
    options = parser.parse_args()
    if options.cards:
        show_cards(FOLDER)
        return 0
    if options.blocks:
        measure_blocks(options.blocks, options.folder, options.busy)
        return bool(show_records(options.set, options.folder))
    missed = (
        measure(options.measure, options.folder, options.busy)
        if options.measure
        else show_records(options.set)
    )
    if missed:
        print("\nnot as aimed at:", ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
