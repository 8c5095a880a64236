"""flat learns and extends as the definition does in every setting, and behaves: it stops, refuses
and reports.

The conformance suite runs over it too, as over every variant. Here are the settings that suite does
not know: ideas switched off, guesses so high that the text must be counted again, wide ids, and
words in batches.
"""

from __future__ import annotations

import functools
import itertools
import mmap
import os
import random
import signal
import subprocess
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from random_extensions import (
    learned_or_refused,
    random_list,
    random_pieces,
    random_table,
    swapped_words,
)
from sanitizers import HEAVIEST, case_text, compiled, printed_merges, sanitized, veto_numbers
from workbench import first_fast

from harness.common import registry
from harness.proof.true_counts import TrueCounts
from variants import flat, flat_file, heap, naive, naive_extending, seg_status, vetoes
from variants.contract import Corpus, Merge, Merges, Meter, TieBreak, WordCounts
from variants.counting import native
from variants.extending import check_inherited

flat_native = pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

HUGE_GUESS = 1e9
"""Guesses the last merge's count far too high, so that pairs that are needed are left out and found
missing.
"""
OWN_VETO = "random_extensions:swapped_words"
VETOES = (
    *(
        "none",
        "superbpe",
        "bytes:3",
        "characters:2",
        "whole_characters",
        "[whole_characters,bytes:6]",
        OWN_VETO,
    ),
    *("[protected:61.e6b395,whole_characters]", "protected:61.e6"),
)


def learn(
    words: WordCounts,
    num_merges: int,
    meter: Meter | None = None,
    *,
    inherited: Sequence[Merge] | None = None,
    inheriting: str = "kept",
    veto: Any = None,
    batches: int = 0,
    tie_break: TieBreak = TieBreak.GREATEST_BYTES,
    **settings: Any,
) -> Sequence[Merge]:
    """The compiled function itself, which has settings that the variant does not offer.

    With `batches`, the words come in so many, each word with shares of its weight.
    """
    columns = [words.data, words.offsets, words.counts]
    if inherited is not None:
        check_inherited(inherited, inheriting, num_merges)
        pieces = flat_native.Pieces(flat.ids_of(inherited))
        if batches:
            take_in(pieces, batches, words)
        settings.update(pieces=pieces, dropping=inheriting == "met", veto=vetoes.limits_of(veto))
    return flat_native.train(  # type: ignore[no-any-return]
        [] if batches else columns,
        num_merges,
        meter or Meter(),
        tie_break=list(TieBreak).index(tie_break),
        **{"min_count": 1, "threads": 1, **settings},
    )


def take_in(pieces: Any, batches: int, words: WordCounts) -> None:
    pieces.begin(1)
    pieces.take(0, words.data, words.offsets, words.counts)
    pieces.begin(batches)  # which forgets it
    for batch in range(batches):
        shares = ((word, (weight + batch) // batches) for word, weight in words.items())
        part = WordCounts.from_items((word, share) for word, share in shares if share)
        pieces.take(batch, part.data, part.offsets, part.counts)


def tied_table(dice: random.Random) -> dict[bytes, int]:
    """Words of weight 1, of which many pairs have one count."""
    letters = dice.choice((b"ab", b"ACGT", b"0123456789abcdef", bytes(range(256))))
    word = bytes(dice.choices(letters, k=dice.randint(2, 80)))
    fibonacci = [b"a", b"b"]
    for _ in range(dice.randint(2, 8)):
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    words = dice.choice(
        (
            [word, word[::-1]],
            [word * 3],
            [fibonacci[-1]],
            [word[:length] for length in range(1, len(word) + 1)],
            [b"%08x" % dice.getrandbits(32) for _ in range(20)],
            [letters[:1] * length for length in dice.sample(range(1, 60), 8)],
        )
    )
    return dict.fromkeys(words, 1)


def pieces_cut_anywhere(dice: random.Random) -> dict[bytes, int]:
    return {
        piece[dice.choice((0, 0, 1, 2)) :] or b"a": weight
        for piece, weight in random_pieces(dice).items()
    }


def learn_at_random(seed: int) -> None:
    """Train on one table in several settings as the definition does, every second time from a list
    under a veto.
    """
    dice = random.Random(seed)
    rules: dict[str, Any] = {
        "tie_break": dice.choice(list(TieBreak)),
        "min_count": dice.choice((1, 1, 2, 5)),
    }
    if extends := seed % 2 == 1:
        table = dice.choice((random_pieces, pieces_cut_anywhere))(dice)
        inherited, inheriting = random_list(dice, table) if dice.random() < 0.8 else ([], "kept")
        rules |= {
            "inherited": inherited,
            "inheriting": inheriting,
            "veto": vetoes.named(dice.choice(VETOES)),
        }
    else:
        table = dice.choice((random_table, tied_table))(dice)
    words = WordCounts.from_items(table.items())
    num_merges = len(rules.get("inherited", ())) + dice.choice((0, 5, 20, 100, 1000))
    expected = learned_or_refused(naive_extending.train, words, num_merges, **rules)
    ideas = {idea: dice.random() < 0.7 for idea in flat.IDEAS}
    assert learned_or_refused(flat.train, words, num_merges, **rules, **ideas) == expected, seed
    assert learned_or_refused(seg_status.train, words, num_merges, **rules) == expected, seed
    for guess_scale in (1.0, 30.0, HUGE_GUESS):
        settings: dict[str, Any] = {
            "threads": dice.randint(1, 5),
            "part": 16,
            "wide_symbols": dice.random() < 0.4,
        }
        settings |= {
            "ideas": dice.randrange(8),
            "batches": dice.choice((0, 1, 4)) if extends else 0,
        }
        learned = learned_or_refused(
            learn, words, num_merges, guess_scale=guess_scale, **rules, **settings
        )
        assert learned == expected, (seed, settings)


@pytest.mark.parametrize("block", first_fast(range(50)))
def test_any_mixture_of_settings_gives_the_same_merges(block: int) -> None:
    for seed in range(120 * block, 120 * block + 120):
        learn_at_random(seed)


@functools.cache
def chain_of_letters(length: int, seed: int = 0) -> WordCounts:
    """One long word of four letters at random."""
    return WordCounts.from_items([(bytes(random.Random(seed).choices(b"ACGT", k=length)), 1)])


@pytest.mark.parametrize("inherits", [False, True])
def test_guess_that_was_too_high_is_noticed_and_fixed(inherits: bool) -> None:
    dice, meter = random.Random(300), Meter()
    words = WordCounts.from_items(
        (bytes(dice.choices(b"abcd ", k=20)), dice.randint(1, 9)) for _ in range(60)
    )
    inherited = naive.train(words, 30) if inherits else None
    assert learn(words, 150, meter, inherited=inherited, guess_scale=HUGE_GUESS) == naive.train(
        words, 150
    )
    assert meter.tallies["rescans"] > 0


@pytest.mark.parametrize("tie_break", TieBreak, ids=lambda tie: tie.value)
def test_a_token_that_grows_to_the_end_of_a_long_word_needs_little_memory(
    tie_break: TieBreak,
) -> None:
    """Spelled at every stage it would take gigabytes; sorted in, its neighbours would take
    minutes.
    """
    merges = flat.train(chain_of_letters(300_000), 10**6, tie_break=tie_break)
    assert isinstance(merges, Merges)
    assert sum(map(len, merges[len(merges) - 1])) == 300_000


def test_refuses_a_text_whose_places_four_bytes_cannot_hold() -> None:
    with mmap.mmap(-1, 2**32) as zeros, memoryview(zeros) as data:
        offsets, counts = memoryview(array("q", [0, 2**32])), memoryview(array("Q", [1]))
        with pytest.raises(
            ValueError,
            match=r"2\*\*32 positions or more; train on a part of the text, as data\.bytes= cuts",
        ):
            flat.train(WordCounts(data, offsets, counts), 1)


def test_every_width_learns_the_same_and_counts_the_same_work() -> None:
    """In the second table most pairs get their lists later, from what is left of the text, by all
    threads.
    """
    dice = random.Random(0)
    many = WordCounts.from_items(
        (dice.randbytes(1) + b"-" * dice.randint(0, 40), seed) for seed in range(1, 5000)
    )
    letters = WordCounts.from_items(
        (bytes(dice.choices(range(30), k=12)), dice.randint(1, 3)) for _ in range(1500)
    )
    lines = WordCounts.from_items(
        (bytes(dice.choices(b"abcdefghij :", k=60)), 2) for _ in range(400)
    )
    first = flat.train(lines, 100)
    cases: list[tuple[WordCounts, int, dict[str, Any]]] = [(many, 1000, {}), (letters, 64, {})]
    for words, part, extending in [
        *cases,
        (lines, 1000, {"inherited": first, "veto": vetoes.superbpe}),
    ]:
        learned = []
        for threads in (1, 2, 3, 16):
            meter = Meter()
            merges = learn(words, 400, meter, threads=threads, part=part, **extending)
            learned.append((merges, {**meter.tallies, "pairs_kept": 0, "probes": 0}))
        assert learned[0][0] == seg_status.train(words, 400, **extending)
        assert [merges for merges, _ in learned] == [learned[0][0]] * 4
        assert words is many or learned == [learned[0]] * 4


def test_phases_and_tallies_are_reported() -> None:
    words, meter = chain_of_letters(20_000), Meter()
    merges = flat.train(words, 300, meter)
    assert set(meter.seconds) == {"convert", "init", "max", "update"}
    assert meter.followed == merges
    assert (
        meter.tallies["occurrences_merged"]
        == 20_000 - TrueCounts(words, inherited=merges).text.tokens
    )
    words, meters = (
        WordCounts.from_items((b"%06o" % (each * 7), each) for each in range(1, 2000)),
        (Meter(), Meter()),
    )
    for meter, pruning in zip(meters, (True, False), strict=True):
        flat.train(words, 100, meter, pruning=pruning)
    assert meters[0].tallies["rescans"] == meters[1].tallies["rescans"] == 0
    assert meters[0].tallies["pairs_kept"] < meters[1].tallies["pairs_kept"]


# ---- extending


CHARACTERS = "法律也"
ALONE = [
    half
    for one in map(str.encode, CHARACTERS)
    for half in ((one[:1], one[1:2]), (one[:2], one[2:]))
]


JOINING: tuple[list[tuple[Any, Any]], ...] = (
    [("律", "也"), ("法", "律")],
    # A merge from inside a character, and one of the same bytes that no character begins with.
    [("法"[:1], "律"), (b"\x95", b"\xe5"), (b"\x95\xe5", b"\xbe"), ("律", "也")],
    [(b"\x8b\xe4", b"\xb9"), ("法", "律")],  # never made
)


@pytest.mark.parametrize("joining", JOINING)
def test_characters_are_encoded_by_themselves_only_where_it_makes_no_difference(
    joining: list[tuple[Any, Any]],
) -> None:
    """Also where a character is complete only when its neighbour is merged already: then their pair
    was never met.
    """
    words = WordCounts.from_items(
        [("法律也".encode(), 3), ("法律".encode(), 1), ("也法也律法律也".encode(), 2)]
    )
    listed = [
        tuple(half if isinstance(half, bytes) else half.encode() for half in pair)
        for pair in joining
    ]
    for seed in range(100):
        inherited = random.Random(seed).sample([*ALONE, *listed], len(ALONE) + len(listed))
        extending: dict[str, Any] = {"inherited": inherited, "inheriting": "met"}
        expected = naive_extending.train(words, 30, **extending)
        assert flat.train(words, 30, **extending) == expected, inherited
        assert learn(words, 30, batches=2, **extending) == expected, inherited


def test_bad_arguments_are_refused() -> None:
    for lefts, rights in (
        ([99, 2**31], [100, 100]),
        ([99, 100], [100, 259]),
        ([1], [100]),
        ([99], [0]),
    ):
        with pytest.raises(
            ValueError, match=f"merge {len(lefts)} has a half that no merge before it makes"
        ):
            flat_native.Pieces((array("I", lefts), array("I", rights)))
    with pytest.raises(ValueError, match="threads is -1; it is 1 or more"):
        flat.train(WordCounts.from_items([(b"ab", 1)]), 1, threads=-1)
    pieces, how = (
        flat_native.Pieces((array("I"), array("I"))),
        {"tie_break": 0, "min_count": 1, "threads": 1},
    )
    with pytest.raises(ValueError, match=r"call Pieces\.begin"):
        flat_native.train([], 9, Meter(), pieces=pieces, **how)
    with pytest.raises(ValueError, match="parts is 0; it is 1 or more"):
        pieces.begin(0)
    with pytest.raises(TypeError):
        flat_native.Pieces.__new__(flat_native.Pieces)


def test_exception_of_a_veto_is_raised() -> None:
    with pytest.raises(LookupError, match="ab"):
        flat.train(WordCounts.from_items([(b"ab", 1)]), 5, veto=Mock(side_effect=LookupError("ab")))


@pytest.mark.slow
def test_ids_beyond_sixteen_bits() -> None:
    """Merges beyond them, also in pieces, which do not know how many will come, and inherited
    ones.
    """
    every_pair = [
        (bytes((one,)), bytes((other,))) for one, other in itertools.product(range(256), repeat=2)
    ]
    words = WordCounts.from_items([(b"abcdefgh", 3), (b"efghabcd", 2)])
    assert flat.train(words, 2**17, inherited=every_pair) == seg_status.train(
        words, 2**17, inherited=every_pair
    )
    words = WordCounts.from_items((left + right, 1) for left, right in every_pair)
    assert flat.train(words, 20) == naive.train(words, 20)
    dice = random.Random(1)
    words = WordCounts.from_items((dice.randbytes(4), dice.randint(1, 9)) for _ in range(30_000))
    for tie_break in (TieBreak.GREATEST_BYTES, TieBreak.RAW_BYTES):
        merges = heap.train(words, 2**20, tie_break=tie_break)
        assert len(merges) > 2**16
        assert merges == flat.train(words, 2**20, tie_break=tie_break)
        assert merges == learn(words, 2**20, inherited=merges[:100], batches=2, tie_break=tie_break)


# ---- ending early


def test_long_work_looks_whether_to_end_and_the_index_says_its_limit(tmp_path: Path) -> None:
    ended = subprocess.run(
        [compiled("limits_driver.cpp", tmp_path)], capture_output=True, text=True, check=False
    )
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.splitlines() == [
        "a long piece asks every 65,536 steps",
        "and ends at a no",
        "forming a large level asks",
        "sorting a large level asks",
        "a thread asks while it waits for others",
        "the text holds more than 2**30 different words; count a part of it, as data.bytes= cuts it, "
        "or with a pattern that cuts more",
    ]


def test_a_piece_being_taken_is_ended_by_stop_and_by_a_signal() -> None:
    words = chain_of_letters(6_000_000)
    letters = [bytes((letter,)) for letter in b"ACGT"]
    # so no place is cut
    inherited = [(left, right) for left in letters for right in letters]
    pieces = flat_native.Pieces(flat.ids_of(inherited))

    pieces.begin(1)
    pieces.stop()
    with pytest.raises(RuntimeError, match=r"^stopped$"):
        pieces.take(0, words.data, words.offsets, words.counts)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        pieces.begin(1)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            pieces.take(0, words.data, words.offsets, words.counts)
    finally:
        signal.signal(signal.SIGALRM, before)
    # It was not taken to its end.
    assert list(learn(words, 20, pieces=pieces, batches=1)) == inherited


# ---- files


@pytest.mark.parametrize(
    ("pattern", "errors"), [("superbpe", "strict"), ("line", "replace"), (r"\S+|\s+", "replace")]
)
def test_a_file_is_extended_by_parts(
    pattern: str, errors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, text, counted = random.Random(0), tmp_path / "book.txt", Meter()
    lines = ["".join(dice.choices("ab: 1é法", k=dice.randint(0, 30))) + "\n" for _ in range(120)]
    text.write_bytes(
        "".join(lines + lines[:40]).encode() + (b"\xff a\n" if errors == "replace" else b"")
    )
    cards = registry.cards("pattern")
    corpus = Corpus(
        str(text), ("::",), cards[pattern]["regex"] if pattern in cards else pattern, errors, True
    )
    words = native.native(corpus, counted)
    extending: dict[str, Any] = {"inherited": naive_extending.train(words, 40), "inheriting": "met"}
    expected = naive_extending.train(words, 120, **extending)
    for name, value in (("BUFFER_BYTES", 64), ("SMALLEST_RANGE", 1), ("PART_BYTES", 1)):
        monkeypatch.setattr(native, name, value)
    for threads in (1, 3):
        meter = Meter()
        assert flat_file.train(corpus, 120, meter, threads=threads, **extending) == expected
        assert meter.tallies["documents"] == counted.tallies["documents"]


# ---- the same in a program, under the compiler's sanitizers


@pytest.mark.slow
def test_each_failed_allocation_is_reported_and_nothing_leaks(tmp_path: Path) -> None:
    functions = ("malloc", "calloc", "realloc", "posix_memalign")
    wrapped = [f"-Wl,--wrap={function}" for function in functions]
    program = sanitized("failing_driver.cpp", "address,undefined", tmp_path, *wrapped)
    # `new` is the driver's own, by malloc
    environment = {**os.environ, "ASAN_OPTIONS": "alloc_dealloc_mismatch=0"}
    ended = subprocess.run([program], capture_output=True, text=True, env=environment, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0), ended.stdout


def driver_case(seed: int) -> tuple[str, list[Merge]]:
    """A case as tests/support/flat_driver.cpp reads it, and what the definition learns; every
    second one extends.
    """
    dice = random.Random(seed)
    extending: dict[str, Any] = {}
    table: Mapping[bytes, int] = random_pieces(dice) if seed % 2 else random_table(dice)
    if seed % 50 == 0:  # even the sums of the words' ends pass 63 bits
        table = HEAVIEST if seed % 100 else {b"ab": 2**62, b"cb": 2**62 - 1}
    words, tie_break = WordCounts.from_items(table.items()), dice.choice(list(TieBreak))
    inherited = naive_extending.train(words, dice.choice((0, 3, 15, 40))) if seed % 2 else []
    num_merges, apart = (
        len(inherited) + dice.choice((5, 50, 1000)),
        dice.choice((1, 2)) if seed % 2 else 0,
    )
    numbers: list[object] = [
        num_merges,
        1,
        list(TieBreak).index(tie_break),
        dice.randint(1, 3),
        dice.randrange(16),
    ]
    numbers += [dice.choice((1, 30, 1e9)), apart]
    if apart:
        inheriting, veto = dice.choice(("kept", "met")), vetoes.named(dice.choice(VETOES[:8]))
        lefts, rights = flat.ids_of(inherited)
        numbers += [
            int(inheriting == "met"),
            int(veto is swapped_words),
            *veto_numbers(veto),
            len(lefts),
        ]
        numbers += [half for pair in zip(lefts, rights, strict=True) for half in pair]
        extending = {"inherited": inherited, "inheriting": inheriting, "veto": veto}
    return case_text(numbers, table), naive_extending.train(
        words, num_merges, tie_break=tie_break, **extending
    )


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(sanitizers: str, tmp_path: Path) -> None:
    threads = 3 if sanitizers == "thread" else 1
    listed = [driver_case(seed) for seed in range(50_000, 50_000 + 600 // threads)]
    program, texts = (
        sanitized("flat_driver.cpp", sanitizers, tmp_path),
        [text for text, _ in listed],
    )
    answers = printed_merges(program, texts, str(threads), first_byte=2)
    assert answers == [expected for _, expected in listed]
