"""What a card of each group may hold.

Data, pattern, measure and experiment cards are data, whoever wrote them: every text has a pattern,
and unknown keys are refused. An experiment names neither a file nor a program. Variant and counting
cards name code, which runs only if you choose them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from harness.common.errors import Refusal, wrong_value
from harness.common.units import did_you_mean

Kind = TypeVar("Kind")
PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
Name = Annotated[str, Meta(pattern=rf"^{PLAIN}\Z")]
"""Of a card or of a file: no folder, no space, and neither an option nor a hidden file."""
RelativePath = Annotated[str, Meta(pattern=rf"^{PLAIN}(/{PLAIN})*\Z")]
Line = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]
Version = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~!_-]*\Z")]
"""Without a colon, by which npm would take a folder or a repository for a version."""
PORT = r"([1-5]?\d{1,4}|6[0-4]\d{3})"
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Strict(Struct, frozen=True, forbid_unknown_fields=True):
    """Refuses keys that it does not know."""


# Data


class Addressed(Strict, frozen=True, tag_field="kind", kw_only=True):
    """Files over HTTP: unpacked if compressed, or the texts in a column of their rows."""

    file: Name
    sha256: list[Digest | None] | None = None
    column: Line | None = None
    separator: str = ""
    download: Whole = 0

    def addresses(self) -> int:
        return 1

    def __post_init__(self) -> None:
        if self.sha256 is not None and len(self.sha256) != self.addresses():
            raise ValueError(f"{len(self.sha256)} sha256 for {self.addresses()} addresses")


class Url(Addressed, frozen=True, tag="url", kw_only=True):
    url: Annotated[str, Meta(pattern=rf"^https?://[A-Za-z0-9.-]+(:{PORT})?(/[!-~]*)?\Z")]


class HuggingFace(Addressed, frozen=True, tag="hugging_face", kw_only=True):
    repository: RelativePath
    revision: RelativePath
    paths: Annotated[list[RelativePath], Meta(min_length=1)]

    def addresses(self) -> int:
        return len(self.paths)


class Packaged(Strict, frozen=True, tag_field="kind", kw_only=True):
    """Files in packages, joined in an order, or what a pattern takes of their lines."""

    version: Version
    files: Annotated[list[Line], Meta(min_length=1)]
    file: Name
    order: Literal["archive", "name", "version"] = "archive"
    lines: Line | None = None
    line_end: str = "\n"
    inside: Line | None = None
    download: Whole = 0

    def __post_init__(self) -> None:
        try:
            groups = re.compile((self.lines or "()").encode()).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"lines is not a regular expression ({error})") from error
        if groups == 0:
            raise ValueError("lines has no group (...) for what is taken of a line")


class PackageIndex(Packaged, frozen=True, tag="package_index", kw_only=True):
    package: Name
    form: Literal["wheel", "source"] = "wheel"


class Debian(Packaged, frozen=True, tag="debian", kw_only=True):
    packages: Annotated[
        list[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.+-]*\Z")]], Meta(min_length=1)
    ]


class Npm(Packaged, frozen=True, tag="npm", kw_only=True):
    package: Annotated[str, Meta(pattern=rf"^(@{PLAIN}/)?{PLAIN}\Z")]


Number = Annotated[int, Meta(ge=1, le=1 << 40)]
Few = Annotated[int, Meta(ge=1, le=1 << 26)]
"""What is held in memory."""
Weights = list[Annotated[int, Meta(ge=0, le=1 << 20)]]


class Generated(Strict, frozen=True, tag_field="kind", kw_only=True):
    """A text, or a table of words, that random numbers make."""

    seed: Annotated[int, Meta(ge=0, lt=1 << 32)]


class RandomText(Generated, frozen=True, tag="random_text", kw_only=True):
    """Letter i of the alphabet has the weight letter_weights[i], equal ones if that is empty; a word
    of n letters has the weight length_weights[n - 1]; a document is `document` words.
    """

    bytes: Number
    alphabet: Annotated[str, Meta(min_length=1)]
    letter_weights: Weights
    length_weights: Weights
    document: Number


class Ties(Generated, frozen=True, tag="ties", kw_only=True):
    letters: Annotated[int, Meta(ge=2, le=26)]


class Runs(Generated, frozen=True, tag="runs", kw_only=True):
    bytes: Number
    longest: Annotated[int, Meta(ge=1, le=1 << 16)]


class OneWord(Generated, frozen=True, tag="one_word", kw_only=True):
    bytes: Number
    alphabet: Annotated[str, Meta(pattern=r"^[\x00-\x7f]+\Z")]


class ZipfWords(Generated, frozen=True, tag="zipf_words", kw_only=True):
    words: Few
    sixteenths: Annotated[int, Meta(ge=17, le=64)]


class RareWords(Generated, frozen=True, tag="rare_words", kw_only=True):
    words: Annotated[int, Meta(ge=1000, le=42**3)]
    heavy: Annotated[int, Meta(ge=2, le=200)]


class Library(Strict, frozen=True, tag_field="kind", tag="stdlib"):
    """The standard library of the running Python."""


class Yours(Strict, frozen=True, tag_field="kind"):
    """What data.path names."""


class YourText(Yours, frozen=True, tag="path"):
    """Text."""


class YourWords(Yours, frozen=True, tag="words"):
    """A table of words."""


class Facts(Strict, frozen=True, omit_defaults=True):
    """Of the whole file, counted with the card's special tokens."""

    bytes: Whole | None = None
    sha256: Digest | None = None
    documents: Whole | None = None
    pre_tokens: Whole | None = None
    words: Whole | None = None


class Excerpt(Strict, frozen=True, kw_only=True):
    """Which part of a corpus is read, and which column."""

    column: str | None = None
    skip_nulls: bool = False
    bytes: int | str | None = None
    skip: int | str | None = None
    documents: int | None = None


class DataCard(Excerpt, frozen=True, kw_only=True):
    """A corpus: conf/data/NAME.yaml."""

    name: Name
    source: (
        Url
        | HuggingFace
        | PackageIndex
        | Debian
        | Npm
        | RandomText
        | Ties
        | Runs
        | OneWord
        | ZipfWords
        | RareWords
        | Library
        | YourText
        | YourWords
    )
    about: Line = ""
    language: Line = ""
    licence: Line = ""
    path: Any = None
    vocab_size: int = 10_000
    special_tokens: list[str] = msgspec.field(default_factory=lambda: ["<|endoftext|>"])
    facts: Facts = Facts()


# The other groups


class PatternCard(Strict, frozen=True):
    """A pre-tokenization pattern: no regex means raw bytes, a partial one may skip text."""

    name: Name
    regex: str | None
    partial: bool = False


MeasureKind = Literal["time", "proof", "instructions"]


class MeasureCard(Strict, frozen=True):
    """How cells are run: with a `precision`, the wanted width of ratios, there are from `repeat` to
    `max_blocks`.
    """

    name: Name
    about: Line = ""
    kind: MeasureKind = "time"
    repeat: int = 1
    warm_up: Whole = 0
    precision: Annotated[float, Meta(gt=0, lt=1)] | None = None
    max_blocks: int = 20


GROUP = "variant|data|counting|pattern|measure"
PARTS = r"data\.(bytes|skip|documents|source\.\w+)|variant\.params(\.\w+)?"
PLAIN_SETTINGS = "variants|vocab_size|threads|tie_break|min_count|seed|errors|inherited"
Swept = Annotated[str, Meta(pattern=rf"^({GROUP}|{PARTS}|{PLAIN_SETTINGS})\Z")]
Values = Annotated[str, Meta(pattern=r"^([\w.,{}\[\] -]|: )*\Z")]
"""Names and numbers, and mappings of these: a colon without a space would name a function."""


class Sweeper(Strict, frozen=True):
    params: dict[Swept, int | float | Values] = {}


class Sweep(Strict, frozen=True):
    mode: Literal["MULTIRUN"]
    sweeper: Sweeper = Sweeper()


class Params(Strict, frozen=True):
    params: dict[Name, bool | int | float | Name | None] = {}


class ExperimentData(Excerpt, frozen=True, kw_only=True):
    source: dict[str, Any] = {}


class Experiment(Strict, frozen=True):
    """What an experiment may set: what is trained on which text, and how it is measured.

    What reads or writes a file of yours, or runs a program, stands on the command line: data.path,
    extend, seeds, protected, save, results, interpreter, a target, a veto of yours.
    """

    defaults: list[dict[Annotated[str, Meta(pattern=rf"^override /({GROUP})\Z")], Name]] = []
    hydra: Sweep | msgspec.UnsetType = msgspec.UNSET
    variants: list[Name] = []
    variant: Params = Params()
    data: ExperimentData = ExperimentData()
    pattern: dict[str, Any] = {}
    measure: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    first_stage: dict[str, Any] = {}
    vocab_size: int | None = None
    vocab_size_at_most: dict[Name, int] = {}
    special_tokens: list[str] = []
    tie_break: Name | None = None
    min_count: int = 1
    inherited: Name | None = None
    veto: Annotated[str, Meta(pattern=r"^[a-z_]+(:\d+)?\Z")] = "none"
    errors: Name | None = None
    threads: int | Name = 1
    repeat: int | None = None
    seed: int = 0
    tokens: bool = False


def fitted(content: object, kind: type[Kind], where: str, advice: str) -> Kind:
    """A mapping as the struct of its kind; `where` ends with a colon or a dot before its keys.
    Raises Refusal, which names the key, if it is not one.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        what, key = wrong_value(error)
        unknown = re.search("unknown field `(.*)`", what)
        names = getattr(kind, "__struct_encode_fields__", ())
        meant = did_you_mean(unknown[1], names) if unknown else ""
        field = f"{where}{key}".rstrip(".: ")
        raise Refusal(f"{field}: {what};{meant} {advice}") from error


def inside(folder: Path, name: str) -> Path:
    """The file of this name in a folder. Raises Refusal for a name that leaves the folder."""
    if re.fullmatch(PLAIN, name) is None:
        raise Refusal(
            f"{name!r} is not the plain name of a file; use letters, digits, _ - and dots"
        )
    return folder / name
