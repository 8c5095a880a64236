"""flat learns and extends as the definition does in every setting, from words and from files, and
behaves: it stops, refuses and reports.

The conformance suite runs over it too, as over every variant. Here are the settings that suite does
not know: ideas switched off, guesses so high that the text must be counted again, wide ids, and
words in batches.
"""

import itertools
import mmap
import random
import signal
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from exploring import seeds
from growing_words import one_word
from random_extensions import (
    VETOES,
    random_list,
    random_pieces,
    random_table,
)
from rows import Row, answer_of, each_row, write_files
from sanitizers import HEAVIEST, compiled, output_of
from scanned_texts import random_content
from tokenizers_made import PATTERNS, split
from workbench import corpus_of, work_of

from harness.proof.cases import merges_from, words_from
from harness.proof.compiled_replay import Replay
from variants import flat, flat_file, heap, naive, naive_extending, seg_status, vetoes
from variants.contract import (
    NULL_METER,
    Corpus,
    Merge,
    Merges,
    Meter,
    TieBreak,
    WordCounts,
    vocab_of,
)
from variants.counting import native
from variants.counting.pretokenize import serial
from variants.extending import check_inherited
from variants.flat_file import train_bpe

flat_native = pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

HUGE_GUESS = 1e9
"""Guesses the last merge's count far too high, so that pairs that are needed are left out and found
missing.
"""


def learn(
    words: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    inherited: Sequence[Merge] | None = None,
    inheriting: str = "kept",
    veto: Any = None,
    batches: int = 0,
    **settings: Any,
) -> Sequence[Merge]:
    """The compiled function itself, which has settings that the variant does not offer.

    With `batches`, the words come in so many, each word with shares of its weight.
    """
    columns = [] if batches else [words.data, words.offsets, words.counts]
    if inherited is not None:
        check_inherited(inherited, inheriting, num_merges)
        pieces = flat_native.Pieces(flat.ids_of(inherited))
        if batches:
            pieces.begin(batches)
        for batch in range(batches):
            shares = ((word, (weight + batch) // batches) for word, weight in words.items())
            part = WordCounts.from_items(shares)
            pieces.take(batch, part.data, part.offsets, part.counts)
        settings.update(pieces=pieces, dropping=inheriting == "met", veto=vetoes.limits_of(veto))

    how = {"tie_break": TieBreak.GREATEST_BYTES, "min_count": 1, "threads": 1, **settings}
    return flat.train_compiled(columns, num_merges, meter, **how)


def tied_table(dice: random.Random) -> dict[bytes, int]:
    """Words of weight 1, of which many pairs have one count."""
    letters = dice.choice((b"ab", b"ACGT", b"0123456789abcdef", bytes(range(256))))
    word = bytes(dice.choices(letters, k=dice.randint(2, 80)))
    beginnings = itertools.accumulate(split(word))
    digits = (b"%08x" % dice.getrandbits(32) for _ in range(20))
    runs = (letters[:1] * length for length in dice.sample(range(1, 60), 8))
    words = dice.choice(([word, word[::-1]], [word * 3], beginnings, digits, runs))
    return dict.fromkeys(words, 1)


def random_case(dice: random.Random, extends: bool) -> tuple[dict[bytes, int], dict[str, Any]]:
    """A table and the rules of training; if it `extends`, from a list under a veto."""
    rules: dict[str, Any] = {
        "num_merges": dice.choice((0, 5, 20, 100, 1000)),
        "tie_break": dice.choice(list(TieBreak)),
        "min_count": dice.choice((1, 1, 2, 5)),
    }
    if not extends:
        table = dice.choice((random_table, tied_table))(dice)
        return dice.choice((table, table, table, HEAVIEST)), rules

    table = random_pieces(dice)
    if dice.random() < 0.5:  # cut anywhere
        table = {word[dice.choice((0, 1, 2)) :] or b"a": weight for word, weight in table.items()}
    inherited, inheriting = random_list(dice, table) if dice.random() < 0.8 else ([], "kept")
    rules["num_merges"] += len(inherited)
    veto = vetoes.named(dice.choice(VETOES))
    return table, {**rules, "inherited": inherited, "inheriting": inheriting, "veto": veto}


@pytest.mark.parametrize("block", seeds(12))
def test_any_mixture_of_settings_gives_the_same_merges(block: int) -> None:
    for seed in range(120 * block, 120 * block + 120):
        dice, extends = random.Random(seed), seed % 2 == 1
        table, rules = random_case(dice, extends)
        words = WordCounts.from_items(table.items())
        ideas = {idea: dice.random() < 0.7 for idea in flat.IDEAS}
        ways: list[tuple[Any, dict[str, Any]]] = [(seg_status.train, {}), (flat.train, ideas)]
        for guess_scale in (1.0, 30.0, HUGE_GUESS):
            settings = {
                "guess_scale": guess_scale,
                "threads": dice.randint(1, 5),
                "part": 16,
                "wide_symbols": dice.random() < 0.4,
                "ideas": dice.randrange(8),
                "batches": dice.choice((0, 1, 4)) if extends else 0,
            }
            ways.append((learn, settings))

        expected = answer_of(naive_extending.train, words, **rules)
        for train, settings in ways:
            learned = answer_of(train, words, **rules, **settings)
            assert learned == expected, (seed, settings)


# Work and memory


@pytest.mark.parametrize("tie_break", TieBreak, ids=lambda tie: tie.value)
def test_token_that_grows_to_the_end_of_a_long_word_needs_little_memory(
    tie_break: TieBreak,
) -> None:
    """Spelled at every stage it would take gigabytes; sorted in, its neighbours would take
    minutes.
    """
    merges = flat.train(one_word(300_000), 10**6, tie_break=tie_break)
    assert isinstance(merges, Merges)
    assert sum(map(len, merges[len(merges) - 1])) == 300_000


def random_lines(alphabet: bytes, length: int, number: int, weight: int = 3) -> WordCounts:
    dice = random.Random(0)
    lines = (bytes(dice.choices(alphabet, k=length)) for _ in range(number))
    return WordCounts.from_items((line, dice.randint(1, weight)) for line in lines)


def test_every_width_learns_the_same_and_counts_the_same_work() -> None:
    """Of `letters` most pairs get their lists later, from what is left of the text, by all
    threads.
    """
    many = random_lines(b"ab----", 20, 5000, weight=5000)
    letters = random_lines(bytes(range(30)), 12, 1500)
    lines = random_lines(b"abcdefghij :", 60, 400)
    extending = {"inherited": flat.train(lines, 100), "veto": vetoes.superbpe}
    cases: list[tuple[WordCounts, Any]] = [(many, {}), (letters, {}), (lines, extending)]

    for words, how in cases:
        expected = seg_status.train(words, 400, **how)
        tallies = []
        for threads in (1, 2, 3, 16):
            meter = Meter()
            assert learn(words, 400, meter, threads=threads, part=64, **how) == expected
            tallies.append({**meter.tallies, "pairs_kept": 0, "probes": 0})
        assert tallies == [tallies[0]] * 4


def test_tallies_tell_what_was_spared_and_what_was_repeated() -> None:
    words, meter = one_word(20_000), Meter()
    merges = flat.train(words, 300, meter)
    left = Replay(words, merges, 300).tokens_left() or 0
    assert meter.tallies["occurrences_merged"] == 20_000 - left

    words = WordCounts.from_items((b"%06o" % (each * 7), each) for each in range(1, 2000))
    pruned, whole = (work_of(flat.train, words, 100, pruning=pruning) for pruning in (True, False))
    assert pruned["pairs_kept"] < whole["pairs_kept"]
    assert pruned["rescans"] == whole["rescans"] == 0

    # A guess that was too high is noticed.
    words = random_lines(b"abcd ", 20, 60)
    for inherited in (None, naive.train(words, 30)):
        work = work_of(learn, words, 150, inherited=inherited, guess_scale=HUGE_GUESS)
        assert work["rescans"] > 0


@pytest.mark.slow
def test_ids_beyond_sixteen_bits() -> None:
    """Merges beyond them, also in pieces, which do not know how many will come, and inherited
    ones.
    """
    letters = split(bytes(range(256)))
    every_pair = list(itertools.product(letters, letters))
    words = WordCounts.from_items([(b"abcdefgh", 3), (b"efghabcd", 2)])
    expected = seg_status.train(words, 2**17, inherited=every_pair)
    assert flat.train(words, 2**17, inherited=every_pair) == expected

    dice = random.Random(1)
    words = WordCounts.from_items((dice.randbytes(4), dice.randint(1, 9)) for _ in range(30_000))
    for tie_break in (TieBreak.GREATEST_BYTES, TieBreak.RAW_BYTES):
        merges = heap.train(words, 2**20, tie_break=tie_break)
        assert len(merges) > 2**16
        assert merges == flat.train(words, 2**20, tie_break=tie_break)
        assert merges == learn(words, 2**20, inherited=merges[:100], batches=2, tie_break=tie_break)


# Extending

ALONE = merges_from(r"\xe6+\xb3 \xe6\xb3+\x95 \xe5+\xbe \xe5\xbe+\x8b \xe4+\xb9 \xe4\xb9+\x9f")


@pytest.mark.parametrize(
    "joining",
    [
        "律+也 法+律",
        # A merge from inside a character, and one of the same bytes that no character begins with.
        r"法+律 \x95+\xe5 \x95\xe5+\xbe 律+也",
        r"\x8b\xe4+\xb9 法+律",  # the first is never made
    ],
)
def test_characters_are_encoded_by_themselves_only_where_it_makes_no_difference(
    joining: str,
) -> None:
    """Also where a character is complete only when its neighbour is merged already: then their pair
    was never met.
    """
    words = WordCounts.from_items(words_from("法律也*3 法律 也法也律法律也*2").items())
    merges = [*ALONE, *merges_from(joining)]
    for seed in range(100):
        random.Random(seed).shuffle(merges)
        extending: dict[str, Any] = {"inherited": merges, "inheriting": "met"}
        expected = naive_extending.train(words, 30, **extending)
        assert flat.train(words, 30, **extending) == expected, merges
        assert learn(words, 30, batches=2, **extending) == expected, merges


# Refusals, and ending early


def test_what_cannot_be_trained_is_refused() -> None:
    words = WordCounts.from_items([(b"ab", 1)])
    with pytest.raises(LookupError, match="ab"):
        flat.train(words, 5, veto=Mock(side_effect=LookupError("ab")))

    offsets, counts = memoryview(array("q", [0, 2**32])), memoryview(array("Q", [1]))
    with mmap.mmap(-1, 2**32) as zeros, memoryview(zeros) as data:
        words = WordCounts(data, offsets, counts)
        with pytest.raises(ValueError, match=r"2\*\*32 positions or more; train on a part of the"):
            flat.train(words, 1)


def test_piece_being_taken_is_ended_by_stop_and_by_a_signal() -> None:
    words = one_word(3_000_000)
    # so no place is cut
    letters = split(b"ACGT")
    inherited = list(itertools.product(letters, letters))
    pieces = flat_native.Pieces(flat.ids_of(inherited))

    pieces.begin(1)
    pieces.stop()
    with pytest.raises(RuntimeError, match=r"^stopped$"):
        pieces.take(0, words.data, words.offsets, words.counts)

    before = signal.signal(signal.SIGALRM, Mock(side_effect=KeyboardInterrupt))
    try:
        pieces.begin(1)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            pieces.take(0, words.data, words.offsets, words.counts)
    finally:
        signal.signal(signal.SIGALRM, before)
    # It was not taken to its end.
    assert list(learn(words, 20, pieces=pieces, batches=1)) == inherited


# The same in a program, under the compiler's sanitizers


@pytest.mark.slow
@each_row(__file__, "flat.toml")
def test_program_finds_all_as_it_should_be(row: Row, tmp_path: Path) -> None:
    program = compiled(row["driver"], tmp_path, *row.get("flags", []))
    printed = output_of(program, *row.get("arguments", []))
    assert printed == row.get("out", printed)


# From a file, the shortest way

TEXT = "It's a test, isn't it?  A test of tests.<|e|>Ein Test, größer als 一二一二.\n\n" * 3


@each_row(__file__, "flat_file.toml")
def test_file_becomes_the_vocabulary_of_the_definition_or_is_refused(row: Row, here: Path) -> None:
    write_files(here, {"text": row.get("text", TEXT)})
    how = {"input_path": "text", "vocab_size": 280, **row.get("how", {})}
    answer = answer_of(train_bpe, **how)
    if "refused" in row:
        assert row["refused"] in answer
        return

    vocabulary, merges = answer
    tokens = row["tokens"]
    words = serial(Corpus("text", tuple(tokens), errors=how.get("errors", "strict")))
    assert merges == naive.train(words, how["vocab_size"] - 256 - len(tokens))
    assert vocabulary == vocab_of(merges, tokens)
    assert len(vocabulary) == row.get("size", 280)
    assert tokens or train_bpe("text", 280, None) == (vocabulary, merges)


@pytest.mark.parametrize("threads", [1, 2])
def test_words_that_cannot_be_numbered_are_refused_while_they_are_counted(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_file, "MOST_CELLS", 100_000)
    corpus, meter = corpus_of(tmp_path, " ".join(f"{each:x}" for each in range(400_000))), Meter()
    with pytest.raises(ValueError, match=r"2\*\*32 positions or more.* train on a sample"):
        flat_file.train(corpus, 43, meter, threads=threads)
    assert meter.done < Path(corpus.path).stat().st_size / 2

    few = corpus_of(tmp_path, "ab cd " * 200_000)
    assert len(flat_file.train(few, 43, threads=threads)) == 4


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BUFFER_BYTES", 64), ("SMALLEST_RANGE", 1), ("PART_BYTES", 1)):
        monkeypatch.setattr(native, name, value)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("pattern", [PATTERNS["superbpe"], PATTERNS["line"], r"\S+|\s+"])
def test_file_is_extended_by_parts(tmp_path: Path, pattern: str) -> None:
    for seed in range(10):
        content, special_tokens = random_content(random.Random(seed))
        corpus = corpus_of(tmp_path, content * 3, special_tokens, pattern, "replace", partial=True)
        counted = Meter()
        words = serial(corpus, counted)
        inherited = naive_extending.train(words, 40)
        how: dict[str, Any] = {"inherited": inherited[::2], "inheriting": "met"}
        expected = naive_extending.train(words, 120, **how)

        for threads in (1, 3):
            meter = Meter()
            assert flat_file.train(corpus, 120, meter, threads=threads, **how) == expected
            assert meter.tallies["documents"] == counted.tallies["documents"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("threads", [1, 4])
def test_meter_can_stop_what_takes_the_parts(tmp_path: Path, threads: int) -> None:
    corpus = corpus_of(tmp_path, "low lower " * 400)
    impatient = Mock(wraps=Meter(), progress=lambda _: False)
    waiting = Mock(take=lambda *_: time.sleep(0.15))
    with pytest.raises(RuntimeError, match="stopped"):
        native.in_parts(corpus, waiting, impatient, threads=threads)
