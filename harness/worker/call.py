"""One call of a counter or trainer: its clock, its meter, and what was measured of it.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import select
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from harness.worker import exchange
from harness.worker.calling import (
    OWN,
    Parameters,
    StoppableMeter,
    arguments_for,
    expect_known_phases,
    expect_merges,
    expect_vocabulary,
    expect_word_counts,
    of_module,
    own_tie_break,
    reads_corpus,
    resolve,
    takes_path,
    vocabulary_and_merges,
    without_variadic,
)
from harness.worker.exchange import Job
from variants import vetoes
from variants.contract import GPT2_PATTERN, Corpus, Merges, TieBreak, Unavailable

IMPORTED, BEGIN, END = b"imported", b"begin", b"end"
"""What the process announces to the harness, which answers with a byte."""
SECONDS_FOR_A_REPLY = 5.0
DEFAULTS = {
    "tie_break": TieBreak.GREATEST_BYTES,
    "min_count": 1,
    "pattern": GPT2_PATTERN,
    "errors": "strict",
    "partial": False,
}
"""What a trainer does that does not take the option; each decides its merges."""


class Channel:
    """A socket to the harness; a trainer that closes or replaces it silences it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.file = os.fstat(descriptor)

    def send(self, word: bytes) -> bool:
        """Write a line to the harness; return False if that is impossible."""
        with contextlib.suppress(OSError):  # closed, or full because the harness is halted
            if os.path.samestat(os.fstat(self.descriptor), self.file):
                return os.write(self.descriptor, word + b"\n") > 0
        return False

    def announce(self, moment: bytes, seconds: float | None = SECONDS_FOR_A_REPLY) -> None:
        """Announce a moment to the harness, and wait until it has read its clock and its
        accounts.
        """
        if self.send(moment):
            with contextlib.suppress(OSError):
                select.select([self.descriptor], [], [], seconds)
                os.read(self.descriptor, 1)


# Taken before the job's code is imported, so nothing it replaces can reach the total.
clock = time.perf_counter


@dataclass
class MeasuredCall:
    """The call of one job, and its state at any moment."""

    job: Job
    parameters: Parameters
    imported: dict[str, list[int]]
    channel: Channel
    meter: StoppableMeter = field(default_factory=StoppableMeter)
    from_file: bool = False
    text: list[int] | None = None
    """The state of the file that it reads, before it does."""
    tie_break: str | None = None
    begun: bool = False
    started: float = field(default_factory=clock)

    def corpus(self) -> Corpus:
        """Return the corpus to read, and note the state of its file."""
        assert self.job.corpus is not None
        self.text = exchange.file_state(self.job.corpus.path)
        return self.job.corpus

    def begin(self) -> None:
        """Start the clock; importing and mapping are not the trainer's work."""
        self.channel.announce(BEGIN)
        self.started = clock()
        self.meter._mark = time.perf_counter()
        self.begun = True
        self.mark()

    def mark(self) -> None:
        """Enter a function of the C library that nothing else calls: a program that counts
        instructions watches it.
        """
        if self.job.counts_instructions:
            os.ctermid()

    def figures(
        self, takes_threads: bool | None = None, digest: str | None = None
    ) -> dict[str, Any]:
        """Return what has been measured up to now; two clocks may differ, so no phase is less than
        nothing.

        The harness gets the digest of the merges or words with the end of the call, so they cannot
        change later.
        """
        # before the clock is read: a call that is stopped goes on
        spent_in = dict(self.meter.seconds)
        end = END if digest is None else b"%b %b" % (END, digest.encode())

        total = clock() - self.started
        self.channel.announce(end)

        replaced = time.perf_counter is not clock
        return {
            "status": "rejected" if replaced else "ok",
            "reason": "time.perf_counter was replaced while it ran, so its phases mean nothing"
            if replaced
            else None,
            "seconds": {phase: max(float(spent), 0.0) for phase, spent in spent_in.items()},
            "total": total,
            "tallies": {name: int(number) for name, number in self.meter.tallies.items()},
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
            "takes_threads": takes_threads,
            "from_file": self.from_file,
            "tie_break": self.tie_break,
            "text": self.text,
            "imported": {**imported_files(), **self.imported},
        }


def imported_files() -> dict[str, list[int]]:
    """Return the files that modules were imported from, each with its state, but for those of the
    standard library, which nobody edits.
    """
    standard = os.__file__.rpartition(os.sep)[0] + os.sep
    states = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if type(path) is not str or path in states:
            continue
        if not path.startswith(standard) or "-packages" in path:
            state = exchange.file_state(path)
            if state is not None:
                states[path] = state
    return states


def count(call: MeasuredCall, counter: Any, output: Path) -> dict[str, Any]:
    """Call a counter; return its figures, and leave its words in `output`.

    Raises ValueError if it returns something else than word counts.
    """
    job = call.job
    positional, keywords = arguments_for(
        call.parameters, [call.corpus()], call.meter, {"threads": job.threads}, job.params
    )
    takes_threads = "threads" in keywords

    call.begin()
    word_counts = counter(*positional, **keywords)
    call.mark()

    if call.meter.refused:  # it has not counted everything
        return {**call.figures(takes_threads), "status": "stopped"}
    expect_word_counts(word_counts)
    expect_known_phases(call.meter.seconds)
    figures = call.figures(takes_threads, exchange.seal(word_counts))
    exchange.write_columns(output / "words", word_counts)
    return {**figures, "words_done": len(word_counts)}


# Training


def train(call: MeasuredCall, trainer: Any) -> dict[str, Any]:
    """Call a trainer; return its figures and its packed merges.

    Raises Unavailable or ValueError if it cannot do the job as it is, or returns something else
    than merges.
    """
    job, parameters = call.job, call.parameters
    call.from_file = reads_corpus(parameters)
    call.tie_break = own_tie_break(parameters) if job.tie_break == OWN else job.tie_break
    offered = offered_options(job)
    special_tokens = None
    if not call.from_file:
        leading = [exchange.read_words(Path(job.words))[0], job.num_merges]
    elif job.corpus is None:
        raise Unavailable("it reads text, and there are only words with their counts here")
    else:
        corpus = call.corpus()
        leading = [corpus, job.num_merges]
        if takes_path(parameters):
            special_tokens = list(corpus.special_tokens)
            vocab_size = 256 + len(special_tokens) + job.num_merges
            leading = [corpus.path, vocab_size, special_tokens.copy()]
            parameters = without_variadic(parameters)
            offered.update(pattern=corpus.pattern, errors=corpus.errors, partial=corpus.partial)

    positional, keywords = arguments_for(parameters, leading, call.meter, offered, job.params)
    expect_signature(job.target, parameters, positional, keywords)
    expect_taken(job.target, offered, keywords)
    if job.profile is not None:
        trainer = profiled(trainer, job.profile)

    call.begin()
    returned = trainer(*positional, **keywords)
    call.mark()

    vocab, merges = ({}, returned) if special_tokens is None else vocabulary_and_merges(returned)
    try:
        # before the clock is read, so nothing is left to be done after it
        content = exchange.packed(merges)
    except ValueError:
        expect_merges(merges)  # which says what is wrong
        raise
    answer = call.figures("threads" in keywords, hashlib.sha256(content).hexdigest())

    expect_merges(merges)
    if special_tokens is not None:
        expect_vocabulary(vocab, merges, special_tokens)
    expect_known_phases(answer["seconds"])
    answer.update(packed_merges=content, merges_done=len(merges), feeding=how_it_is_fed(call))
    if call.meter.refused and len(merges) < job.num_merges:
        answer.update(status="stopped")
    return answer


def merges_so_far(call: MeasuredCall) -> dict[str, Any]:
    """Return the merges that the meter of a trainer follows while it goes on.

    Raises ValueError if the meter follows something else.
    """
    followed = call.meter.followed
    merges = Merges(followed.ids[:]) if type(followed) is Merges else list(followed)
    expect_merges(merges)
    return {"packed_merges": exchange.packed(merges), "merges_done": len(merges)}


def profiled(trainer: Any, path: str) -> Callable[..., Any]:
    """Return the trainer so that cProfile's statistics of its call go to a file."""
    import cProfile  # late: a timed process does not need it

    def call(*positional: Any, **keywords: Any) -> Any:
        profile = cProfile.Profile()
        try:
            return profile.runcall(trainer, *positional, **keywords)
        finally:
            profile.dump_stats(path)

    return call


def offered_options(job: Job) -> dict[str, Any]:
    """Return the keywords that a trainer gets if it takes them."""
    offered: dict[str, Any] = {"threads": job.threads, "min_count": job.min_count}
    if job.tie_break != OWN:
        offered["tie_break"] = TieBreak(job.tie_break)

    if job.extending is not None:
        offered["inherited"] = exchange.unpacked(Path(job.extending.merges).read_bytes())
        offered["inheriting"] = job.extending.inheriting
        offered["veto"] = vetoes.named(job.extending.veto)
    return offered


def expect_signature(
    target: str, parameters: Parameters, positional: list[Any], keywords: dict[str, Any]
) -> None:
    """Raise ValueError if the call would lack an argument: the target is not a trainer."""
    required = [
        name
        for name, parameter in without_variadic(parameters).items()
        if parameter.default is parameter.empty and name not in keywords
    ]
    if len(required) <= len(positional):
        return

    if required[0] == "self":
        method = target.rpartition(":")[2]
        raise ValueError(
            f"it is a method; write a function that makes the object and calls {method}"
        )
    raise ValueError(
        f"its parameters are ({', '.join(required)}), not (word_counts, num_merges) or "
        "(input_path, vocab_size, special_tokens); name the first input_path if it is a path"
    )


def expect_taken(target: str, offered: dict[str, Any], keywords: dict[str, Any]) -> None:
    """Raise ValueError or Unavailable if the trainer does not take an option that decides its
    merges.
    """
    for name, default in DEFAULTS.items():
        if name not in keywords and offered.get(name, default) != default:
            raise ValueError(f"{target} takes no {name}, so it runs with the default only")
    if "inherited" in offered and "inherited" not in keywords:
        raise Unavailable(f"{target} takes no inherited, so it cannot go on from merges")


def how_it_is_fed(call: MeasuredCall) -> dict[str, Any] | None:
    """Return how a trainer that reads the file is fed, in its own words."""
    describe = of_module(resolve(call.job.target), "feeding") if call.from_file else None
    if describe is None:
        return None
    return dict(describe(call.job.corpus, **call.job.params)._asdict())
