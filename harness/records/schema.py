"""The seven kinds of line in `records.jsonl`, schema 2: what each key holds, its type, and what must
hold between keys.

A key of a line is left out if it has its default. Within a schema keys are only added, and unknown
keys are ignored; a key that goes or changes its meaning makes the next schema.
docs/reference/records.md is generated from these classes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, get_args

import msgspec
from msgspec import Meta

from harness.common.cards import Digest, Whole
from harness.proof import WRONG, Identity
from variants import contract

SCHEMA: Literal[2] = 2
BY_ITSELF = "itself"  # in the place of a counter's name: the trainer reads the file itself
PHASES = (*contract.PHASES, "other")  # in the order of a run; `other` is what no phase covers
ROUNDING_SECONDS = 1e-6
"""How far a total may differ from the sum of its phases: float sums depend on their order."""


Number = Annotated[float, Meta(ge=0)]
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)$")]
Status = Literal[
    "ok",
    "mismatch",
    "error",
    "timeout",
    "out_of_memory",
    "killed",
    "rejected",
    "skipped",
]
Tier = Literal["identity", "work", "time"]
State = Literal[
    "mismatch",
    "drift",
    "regression",
    "unmeasured",
    "inconclusive",
    "absent",
    "accepted",
    "pass",
]
"""Of what a gate found, the gravest first. `absent` cannot run here, or has nothing to be compared with:
neither good nor bad.
"""


class AcceptedChange(TypedDict):
    variant: str
    """The variant."""
    tier: str
    """Work or time."""
    reason: str
    """Why it is accepted."""


class GateQuestion(TypedDict, total=False):
    card: dict[str, Any]
    """Every key of the gate's card."""
    head: str
    """What was gated."""
    base: str
    """What it was compared with; missing without a base."""
    commit: str
    """The commit of the base; missing without one."""
    card_change: str
    """How the change edits the gate's own card; empty if it does not."""
    accepted: list[AcceptedChange]
    """The changes that are accepted against this commit."""
    snapshot: dict[str, dict[str, dict[str, int]]]
    """The accepted counts of work by variant and corpus; missing without any."""


class Gated(TypedDict):
    tier: Tier
    """What the gate measured it for; counts of work come with `identity`."""
    corpus: str
    """The corpus by its name in the gate's card."""
    comparison: str
    """The variant, or the two that were compared."""
    side: Literal["base", "head", "again"]
    """`again` is base a second time."""


class Data(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    name: str | None = None
    """The card's name, or the file's."""
    sha256: Digest | None = None
    """The digest of the bytes that were read."""
    bytes: Whole | None = None
    """How many bytes were read."""
    skip: Whole | None = None
    """How many bytes were passed over before them."""
    documents: Whole | None = None
    """Texts between special tokens."""
    pre_tokens: Whole | None = None
    """Matches of the pattern."""
    words: Whole | None = None
    """Distinct pre-tokens."""
    generated: dict[str, Any] | None = None
    """The parameters of a generated data set, or how an instance was drawn."""


class CellLimits(TypedDict, total=False):
    wall_seconds: Number
    """Wall time."""
    memory_bytes: Whole
    """Memory of all processes together."""


class Fed(TypedDict, total=False):
    program: str
    """The package and its version."""
    way_in: str
    """The function and the form of the text."""
    pre_tokens: str
    """Who splits the text, and by what."""
    special_tokens: str
    """What became of special tokens."""
    ties: str
    """How it chooses among equal counts."""
    by_design: str
    """Why its merges are meant to differ, by its card."""


class Seconds(TypedDict, total=False):
    read: Number
    """Reading the file; for a counter in several processes, finding where to cut it."""
    count: Number
    """Splitting into pre-tokens and counting the words."""
    convert: Number
    """Passing words in and merges out, for compiled trainers."""
    init: Number
    """All that a trainer does before its first maximum."""
    copy: Number
    """Copying all pairs before the maximum is looked for, where a stage does that."""
    max: Number
    """Finding the most frequent pair."""
    update: Number
    """Applying merges and changing counts."""
    other: float
    """What no phase covers; rounding can make it negative."""
    total: Number
    """Wall time of counter and trainer; the phases add up to it."""


class Witness(TypedDict, total=False):
    wall_seconds: Number
    """By the parent's clock."""
    cpu_seconds: Number
    """By the kernel's account."""
    system_seconds: Number
    """The part of them that the kernel worked for the process."""
    import_cpu_seconds: Number
    """Before the call: imports and `before_the_clock()`; in no total."""


class Disturbance(TypedDict, total=False):
    psi_cpu_seconds: Number
    """For how long something on the machine waited for a CPU."""
    steal_seconds: Number
    """What the hypervisor gave to other machines."""


class InstructionCount(TypedDict):
    count: Whole
    """Instructions of the trainer's call alone."""
    path: str | None
    """The instruction set and the C library of the program."""
    tool: str | None
    """What counted them, with its version."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", kw_only=True):
    """A line: its kind and its run."""

    run: Moment
    """The command that this line belongs to: when it started."""


class Run(Line, tag="run", kw_only=True, frozen=True):
    """One command; written again if it was resumed under other circumstances."""

    schema: Literal[2]
    """The version of this description."""
    overrides: list[str] = []
    """The command's overrides as typed; of a path its last name alone."""
    plan: str | None = None
    """Names what the command measures; an interrupted run resumes by it."""
    measure: str | None = None
    """The preset, `measure=NAME`."""
    repeat: Whole | None = None
    """How many blocks the run has; with `precision`, at least."""
    host: str | None = None
    """A digest of what makes two machines comparable."""
    environment: dict[str, Any] = {}
    """Machine, Python, compilers, packages and the state of the code."""
    question: GateQuestion | None = None
    """Of a gate: what it compares, and by which card."""


class Cell(Line, tag="cell", kw_only=True, frozen=True):
    """Everything that the measurements of one trainer, or of one counter, share."""

    cell: Whole
    """The number of the cell in its run."""
    task: Whole = 0
    """The number of the task in its run: cells of one task share blocks."""
    place: Whole = 0
    """Its place among the task's cells, in the requested order."""
    role: Literal["count", "train"]
    """A word counter or a trainer; `cell` in a record."""
    run_key: str = ""
    """Names the work: equal for measurements of the same thing in any run."""
    variant: str | None = None
    """The trainer's name; null for a counter."""
    family: str | None = None
    """The idea behind the variant."""
    params: dict[str, Any] = {}
    """The parameters of the variant, or of the counter; all of them."""
    counting: str
    """The counter's name; `itself` for a trainer that reads the file."""
    counting_chosen: bool = False
    """Whether the user named the counter, not the variant."""
    threads: Whole | None = None
    """Requested number of threads, of counter and trainer."""
    takes_threads: bool | None = None
    """Whether it can use more than one."""
    data: Data
    """The corpus."""
    pattern: str | None = None
    """The pattern's name, or its text."""
    pattern_partial: bool | None = None
    """Whether the pattern was allowed to leave text out."""
    special_tokens: list[str] = []
    """What the text was split at."""
    errors: str | None = None
    """What was done with bytes that are not UTF-8."""
    words_sha256: Digest | None = None
    """Of the counted words: equal for counters that agree."""
    tie_break: str | None = None
    """Which of several equally frequent pairs is merged."""
    min_count: Whole | None = None
    """The count below which no pair is merged."""
    vocab_size: Whole | None = None
    """Requested size, special tokens included."""
    extend: Digest | None = None
    """Of the merges that training continued from, as `merges_sha256`."""
    extend_name: str | None = None
    """The file or folder that they were read from."""
    extend_merges: Whole | None = None
    """How many they were."""
    inherited: Literal["kept", "met"] | None = None
    """Whether all were kept, or only those met."""
    seeds: str | None = None
    """The tokens that these merges spell: a list, or the name of a file."""
    veto: str | None = None
    """Which pairs might not be merged, by the name of the veto."""
    feeding: Fed | None = None
    """What an outside trainer was given, in its own words."""
    source_sha256: Digest | None = None
    """The digest of the files that its process imported."""
    interpreter: str | None = None
    """The Python that ran it."""
    limits: CellLimits | None = None
    """What the process was allowed."""
    gate: Gated | None = None
    """Of a gate: for which of its questions it is measured."""

    def __post_init__(self) -> None:
        if self.role == "train" and self.variant is None:
            raise ValueError("variant is missing, but role is train")


class Measurement(Line, tag="measurement", kw_only=True, frozen=True):
    """One fresh process."""

    cell: Whole
    """The number of the cell in its run."""
    attempt: Whole = 1
    """1, and one more each time that the run was resumed."""
    block: Whole = 0
    """Which of the run's blocks, from 0."""
    warm_up: bool = False
    """Whether this is warm-up, which is in no figure."""
    started: Moment
    """When the call started."""
    status: Status
    """How it ended; only `ok` and `mismatch` have a total."""
    reason: str | None = None
    """Why the status is not `ok`, in a sentence."""
    seconds: Seconds = {}
    """Wall seconds by phase, the counter's in the same block included."""
    cpu_seconds: Number | None = None
    """The kernel's account of the processes of counter and trainer."""
    system_seconds: Number | None = None
    """The part of `cpu_seconds` that the kernel worked for them."""
    cpu_wait_seconds: Number | None = None
    """How long the calls waited for a CPU; tables show times without it."""
    cpu_wait_unknown: str | None = None
    """Why that is unknown; then tables show wall times."""
    merges: Whole | None = None
    """How many merges there are."""
    merges_sha256: Digest | None = None
    """The digest of the merges, see results/README.md."""
    merges_done: Whole | None = None
    """How many merges were made, also if it did not finish."""
    tallies: dict[str, Whole] | None = None
    """Counts of work by name, equal on every machine."""
    instructions: InstructionCount | None = None
    """What `measure=instructions` counted."""
    peak_rss_bytes: Whole | None = None
    """The peak of resident memory, child processes included."""
    memory_is_sampled: bool = False
    """Whether the peak is of samples, ten in a second."""
    witness: Witness | None = None
    """The same call as others measured it."""
    disturbance: Disturbance | None = None
    """What happened on the machine while the call ran."""
    stderr_tail: str = ""
    """The last that the process wrote to standard error."""

    def __post_init__(self) -> None:
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason is missing, but status is {self.status}")

        if (total := self.seconds.get("total")) is not None:
            parts = sum(self.seconds.values()) - total  # type: ignore[arg-type]
            if abs(parts - total) > ROUNDING_SECONDS:
                raise ValueError(
                    f"seconds.total is {total:.6f}, but its phases add up to {parts:.6f}"
                )
            if (self.cpu_wait_seconds or 0.0) >= total > 0:
                raise ValueError(f"cpu_wait_seconds must be less than seconds.total, {total:.6f}")
            if self.status not in ("ok", "mismatch"):
                raise ValueError(f"seconds.total must be missing if status is {self.status}")


class Proof(Line, tag="proof", kw_only=True, frozen=True):
    """The verdict on one list of merges of a cell."""

    cell: Whole
    """The number of the cell in its run."""
    merges_sha256: Digest
    """The digest of the merges."""
    identity: Identity
    """Whether the merges are the defined ones."""
    tokens: Whole | None = None
    """How many tokens the merges leave of the text, with `tokens=true`."""

    def __post_init__(self) -> None:
        if self.identity.kind == WRONG and not self.identity.reason:
            raise ValueError("identity.reason is missing, but identity.kind is wrong")


class WholeBlock(Line, tag="block", kw_only=True, frozen=True):
    """One attempt measured all of a block, so its cells can be compared."""

    task: Whole = 0
    """The task, as in `cell`."""
    block: Whole = 0
    """The block, as in `measurement`."""
    warm_up: bool = False
    """The same."""
    attempt: Whole = 1
    """The same."""


class Note(Line, tag="note", kw_only=True, frozen=True):
    """Of a gate: something that was not measured, and why."""

    tier: Tier
    """What it was not measured for."""
    variant: str
    """The variant, or the two that were compared; `all` for a tier."""
    state: State
    """What that means for the verdict."""
    reason: str
    """Why, in a sentence."""


class End(Line, tag="end", kw_only=True, frozen=True):
    """The run is complete."""


AnyLine = Run | Cell | Measurement | Proof | WholeBlock | Note | End
KINDS: tuple[type[Line], ...] = get_args(AnyLine)
DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(AnyLine)
