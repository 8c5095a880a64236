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

from harness.proof import WRONG
from variants import contract

SCHEMA: Literal[2] = 2
BY_ITSELF = "itself"  # in the place of a counter's name: the trainer reads the file itself
PHASES = (*contract.PHASES, "other")  # in the order of a run; `other` is what no phase covers
ROUNDING_SECONDS = 1e-6
"""How far a total may differ from the sum of its phases: float sums depend on their order."""


def doc(text: str) -> Meta:
    return Meta(description=text)


Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=0)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)$")]
Token = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
Pair = Annotated[list[Token], Meta(min_length=2, max_length=2)]
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
Kind = Literal["identical", "identical_up_to_ties", "different_by_design", "wrong", "unproved"]


RunKey = Annotated[Moment, doc("the command that this line belongs to: when it started")]
CellKey = Annotated[Whole, doc("the number of the cell in its run")]


class AcceptedChange(TypedDict):
    variant: Annotated[str, doc("the variant")]
    tier: Annotated[str, doc("work or time")]
    reason: Annotated[str, doc("why it is accepted")]


class GateQuestion(TypedDict, total=False):
    card: Annotated[dict[str, Any], doc("every key of the gate's card")]
    head: Annotated[str, doc("what was gated")]
    base: Annotated[str, doc("what it was compared with; missing without a base")]
    commit: Annotated[str, doc("the commit of the base; missing without one")]
    card_change: Annotated[
        str, doc("how the change edits the gate's own card; empty if it does not")
    ]
    accepted: Annotated[
        list[AcceptedChange], doc("the changes that are accepted against this commit")
    ]
    snapshot: Annotated[
        dict[str, dict[str, dict[str, int]]],
        doc("the accepted counts of work by variant and corpus; missing without any"),
    ]


class Gated(TypedDict):
    tier: Annotated[Tier, doc("what the gate measured it for; counts of work come with `identity`")]
    corpus: Annotated[str, doc("the corpus by its name in the gate's card")]
    comparison: Annotated[str, doc("the variant, or the two that were compared")]
    side: Annotated[Literal["base", "head", "again"], doc("`again` is base a second time")]


class Data(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    name: Annotated[str | None, doc("the card's name, or the file's")] = None
    sha256: Annotated[Digest | None, doc("the digest of the bytes that were read")] = None
    bytes: Annotated[Whole | None, doc("how many bytes were read")] = None
    skip: Annotated[Whole | None, doc("how many bytes were passed over before them")] = None
    documents: Annotated[Whole | None, doc("texts between special tokens")] = None
    pre_tokens: Annotated[Whole | None, doc("matches of the pattern")] = None
    words: Annotated[Whole | None, doc("distinct pre-tokens")] = None
    generated: Annotated[
        dict[str, Any] | None,
        doc("the parameters of a generated data set, or how an instance was drawn"),
    ] = None


class CellLimits(TypedDict, total=False):
    wall_seconds: Annotated[Number, doc("wall time")]
    memory_bytes: Annotated[Whole, doc("memory of all processes together")]


class Fed(TypedDict, total=False):
    program: Annotated[str, doc("the package and its version")]
    way_in: Annotated[str, doc("the function and the form of the text")]
    pre_tokens: Annotated[str, doc("who splits the text, and by what")]
    special_tokens: Annotated[str, doc("what became of special tokens")]
    ties: Annotated[str, doc("how it chooses among equal counts")]
    by_design: Annotated[str, doc("why its merges are meant to differ, by its card")]


class Seconds(TypedDict, total=False):
    read: Annotated[
        Number, doc("reading the file; for a counter in several processes, finding where to cut it")
    ]
    count: Annotated[Number, doc("splitting into pre-tokens and counting the words")]
    convert: Annotated[Number, doc("passing words in and merges out, for compiled trainers")]
    init: Annotated[Number, doc("all that a trainer does before its first maximum")]
    copy: Annotated[
        Number, doc("copying all pairs before the maximum is looked for, where a stage does that")
    ]
    max: Annotated[Number, doc("finding the most frequent pair")]
    update: Annotated[Number, doc("applying merges and changing counts")]
    other: Annotated[float, doc("what no phase covers; rounding can make it negative")]
    total: Annotated[Number, doc("wall time of counter and trainer; the phases add up to it")]


class Witness(TypedDict, total=False):
    wall_seconds: Annotated[Number, doc("by the parent's clock")]
    cpu_seconds: Annotated[Number, doc("by the kernel's account")]
    system_seconds: Annotated[
        Number, doc("the part of them that the kernel worked for the process")
    ]
    import_cpu_seconds: Annotated[
        Number, doc("before the call: imports and `before_the_clock()`; in no total")
    ]


class Disturbance(TypedDict, total=False):
    psi_cpu_seconds: Annotated[
        Number, doc("for how long something on the machine waited for a CPU")
    ]
    steal_seconds: Annotated[Number, doc("what the hypervisor gave to other machines")]


class InstructionCount(TypedDict):
    count: Annotated[Whole, doc("instructions of the trainer's call alone")]
    path: Annotated[str | None, doc("the instruction set and the C library of the program")]
    tool: Annotated[str | None, doc("what counted them, with its version")]


class StoredIdentity(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    kind: Annotated[Kind, doc("whether the merges are the defined ones")]
    tie_break: Annotated[str | None, doc("the tie-break of the contract under which they are")] = (
        None
    )
    reason: Annotated[str | None, doc("why they are not, in a sentence")] = None
    merge: Annotated[Whole | None, doc("the number, from 1, of the first merge that shows it")] = (
        None
    )
    got: Annotated[Pair | None, doc("that merge, left and right token in hexadecimal")] = None
    want: Annotated[Pair | None, doc("the most frequent pair at that moment")] = None
    got_count: Annotated[Whole | None, doc("the true count of the one")] = None
    want_count: Annotated[Whole | None, doc("the true count of the other")] = None
    of_own_words: Annotated[
        str | None, doc("the kind of the same merges on the words of the trainer's own pattern")
    ] = None


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", kw_only=True):
    """A line: its kind and its run."""

    run: RunKey


class Run(Line, tag="run", kw_only=True, frozen=True):
    """One command; written again if it was resumed under other circumstances."""

    schema: Annotated[Literal[2], doc("the version of this description")]
    overrides: Annotated[
        list[str], doc("the command's overrides as typed; of a path its last name alone")
    ] = []
    plan: Annotated[
        str | None, doc("names what the command measures; an interrupted run resumes by it")
    ] = None
    measure: Annotated[str | None, doc("the preset, `measure=NAME`")] = None
    repeat: Annotated[
        Whole | None, doc("how many blocks the run has; with `precision`, at least")
    ] = None
    host: Annotated[str | None, doc("a digest of what makes two machines comparable")] = None
    environment: Annotated[
        dict[str, Any], doc("machine, Python, compilers, packages and the state of the code")
    ] = {}
    question: Annotated[
        GateQuestion | None, doc("of a gate: what it compares, and by which card")
    ] = None


class Cell(Line, tag="cell", kw_only=True, frozen=True):
    """Everything that the measurements of one trainer, or of one counter, share."""

    cell: CellKey
    task: Annotated[
        Whole, doc("the number of the task in its run: cells of one task share blocks")
    ] = 0
    place: Annotated[Whole, doc("its place among the task's cells, in the requested order")] = 0
    role: Annotated[
        Literal["count", "train"], doc("a word counter or a trainer; `cell` in a record")
    ]
    run_key: Annotated[
        str, doc("names the work: equal for measurements of the same thing in any run")
    ] = ""
    variant: Annotated[str | None, doc("the trainer's name; null for a counter")] = None
    family: Annotated[str | None, doc("the idea behind the variant")] = None
    params: Annotated[
        dict[str, Any], doc("the parameters of the variant, or of the counter; all of them")
    ] = {}
    counting: Annotated[str, doc("the counter's name; `itself` for a trainer that reads the file")]
    counting_chosen: Annotated[bool, doc("whether the user named the counter, not the variant")] = (
        False
    )
    threads: Annotated[Whole | None, doc("requested number of threads, of counter and trainer")] = (
        None
    )
    takes_threads: Annotated[bool | None, doc("whether it can use more than one")] = None
    data: Annotated[Data, doc("the corpus")]
    pattern: Annotated[str | None, doc("the pattern's name, or its text")] = None
    pattern_partial: Annotated[
        bool | None, doc("whether the pattern was allowed to leave text out")
    ] = None
    special_tokens: Annotated[list[str], doc("what the text was split at")] = []
    errors: Annotated[str | None, doc("what was done with bytes that are not UTF-8")] = None
    words_sha256: Annotated[
        Digest | None, doc("of the counted words: equal for counters that agree")
    ] = None
    tie_break: Annotated[str | None, doc("which of several equally frequent pairs is merged")] = (
        None
    )
    min_count: Annotated[Whole | None, doc("the count below which no pair is merged")] = None
    vocab_size: Annotated[Whole | None, doc("requested size, special tokens included")] = None
    extend: Annotated[
        Digest | None, doc("of the merges that training continued from, as `merges_sha256`")
    ] = None
    extend_name: Annotated[str | None, doc("the file or folder that they were read from")] = None
    extend_merges: Annotated[Whole | None, doc("how many they were")] = None
    inherited: Annotated[
        Literal["kept", "met"] | None, doc("whether all were kept, or only those met")
    ] = None
    seeds: Annotated[
        str | None, doc("the tokens that these merges spell: a list, or the name of a file")
    ] = None
    veto: Annotated[str | None, doc("which pairs might not be merged, by the name of the veto")] = (
        None
    )
    feeding: Annotated[Fed | None, doc("what an outside trainer was given, in its own words")] = (
        None
    )
    source_sha256: Annotated[
        Digest | None, doc("the digest of the files that its process imported")
    ] = None
    interpreter: Annotated[str | None, doc("the Python that ran it")] = None
    limits: Annotated[CellLimits | None, doc("what the process was allowed")] = None
    gate: Annotated[Gated | None, doc("of a gate: for which of its questions it is measured")] = (
        None
    )

    def __post_init__(self) -> None:
        if self.role == "train" and self.variant is None:
            raise ValueError("variant is missing, but role is train")


class Measurement(Line, tag="measurement", kw_only=True, frozen=True):
    """One fresh process."""

    cell: CellKey
    attempt: Annotated[Whole, doc("1, and one more each time that the run was resumed")] = 1
    block: Annotated[Whole, doc("which of the run's blocks, from 0")] = 0
    warm_up: Annotated[bool, doc("whether this is warm-up, which is in no figure")] = False
    started: Annotated[Moment, doc("when the call started")]
    status: Annotated[Status, doc("how it ended; only `ok` and `mismatch` have a total")]
    reason: Annotated[str | None, doc("why the status is not `ok`, in a sentence")] = None
    seconds: Annotated[
        Seconds, doc("wall seconds by phase, the counter's in the same block included")
    ] = {}
    cpu_seconds: Annotated[
        Number | None, doc("the kernel's account of the processes of counter and trainer")
    ] = None
    system_seconds: Annotated[
        Number | None, doc("the part of `cpu_seconds` that the kernel worked for them")
    ] = None
    cpu_wait_seconds: Annotated[
        Number | None,
        doc("how long the calls waited for a CPU; tables show times without it"),
    ] = None
    cpu_wait_unknown: Annotated[
        str | None, doc("why that is unknown; then tables show wall times")
    ] = None
    merges: Annotated[Whole | None, doc("how many merges there are")] = None
    merges_sha256: Annotated[
        Digest | None, doc("the digest of the merges, see results/README.md")
    ] = None
    merges_done: Annotated[
        Whole | None, doc("how many merges were made, also if it did not finish")
    ] = None
    tallies: Annotated[
        dict[str, Whole] | None, doc("counts of work by name, equal on every machine")
    ] = None
    instructions: Annotated[InstructionCount | None, doc("what `measure=instructions` counted")] = (
        None
    )
    peak_rss_bytes: Annotated[
        Whole | None, doc("the peak of resident memory, child processes included")
    ] = None
    memory_is_sampled: Annotated[bool, doc("whether the peak is of samples, ten in a second")] = (
        False
    )
    witness: Annotated[Witness | None, doc("the same call as others measured it")] = None
    disturbance: Annotated[
        Disturbance | None, doc("what happened on the machine while the call ran")
    ] = None
    stderr_tail: Annotated[str, doc("the last that the process wrote to standard error")] = ""

    def __post_init__(self) -> None:
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason is missing, but status is {self.status}")

        if (total := self.seconds.get("total")) is not None:
            spent: dict[str, float] = {**self.seconds}  # type: ignore[dict-item]
            parts = sum(spent.get(phase, 0.0) for phase in PHASES)
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

    cell: CellKey
    merges_sha256: Annotated[Digest, doc("the digest of the merges")]
    identity: Annotated[StoredIdentity, doc("whether the merges are the defined ones")]
    tokens: Annotated[
        Whole | None, doc("how many tokens the merges leave of the text, with `tokens=true`")
    ] = None

    def __post_init__(self) -> None:
        if self.identity.kind == WRONG and not self.identity.reason:
            raise ValueError("identity.reason is missing, but identity.kind is wrong")


class WholeBlock(Line, tag="block", kw_only=True, frozen=True):
    """One attempt measured all of a block, so its cells can be compared."""

    task: Annotated[Whole, doc("the task, as in `cell`")] = 0
    block: Annotated[Whole, doc("the block, as in `measurement`")] = 0
    warm_up: Annotated[bool, doc("the same")] = False
    attempt: Annotated[Whole, doc("the same")] = 1


class Note(Line, tag="note", kw_only=True, frozen=True):
    """Of a gate: something that was not measured, and why."""

    tier: Annotated[Tier, doc("what it was not measured for")]
    variant: Annotated[str, doc("the variant, or the two that were compared; `all` for a tier")]
    state: Annotated[State, doc("what that means for the verdict")]
    reason: Annotated[str, doc("why, in a sentence")]


class End(Line, tag="end", kw_only=True, frozen=True):
    """The run is complete."""


AnyLine = Run | Cell | Measurement | Proof | WholeBlock | Note | End
KINDS: tuple[type[Line], ...] = get_args(AnyLine)
DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(AnyLine)
