"""flat goes on from merges as the definition does in every setting: guesses far too high, threads, wide types."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from meters import Recorder, interrupt
from random_extensions import random_list, random_pieces
from sanitizers import OF_FLAT, case_text, printed_merges, sanitized, veto_numbers
from test_extending import learned_or_refused, swapped_words
from test_flat import HUGE_GUESS, settings_at_random

from harness.common import registry
from variants import flat, flat_extending, flat_file, heap, naive_extending, seg_status, vetoes
from variants.contract import Corpus, Merge, Meter, TieBreak, WordCounts
from variants.counting import native

flat_native = pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

VETOES = (
    "none",
    "superbpe",
    "bytes:3",
    "characters:2",
    "test_extending:swapped_words",
    "whole_characters",
    "[whole_characters,bytes:6]",
    "[protected:61.e6b395,whole_characters]",
)


def learn(
    words: WordCounts, num_merges: int, inherited: Sequence[Merge], batches: int = 0, **settings: Any
) -> Sequence[Merge]:
    """The compiled function itself, which has settings that the variant does not offer.

    With `batches`, the words come in so many, each word with shares of its weight.
    """
    columns = [words.data, words.offsets, words.counts]
    inheriting, veto = settings.pop("inheriting", "kept"), settings.pop("veto", None)
    meter = settings.pop("meter", None) or Meter()
    ids = flat_extending.numbered(inherited, inheriting, num_merges, lambda ids: flat.pieces_of(ids, columns).met())
    pieces = taken_in(batches, words, ids) if batches else flat_native.Pieces(ids)
    return flat_native.train(  # type: ignore[no-any-return]
        [] if batches else columns,
        num_merges,
        meter,
        **{
            "tie_break": list(TieBreak).index(settings.pop("tie_break", TieBreak.GREATEST_BYTES)),
            "min_count": 1,
            "threads": 1,
            "pieces": pieces,
            "inherited": ids,
            "dropping": inheriting == "met",
            "veto": vetoes.limits_of(veto),
            **settings,
        },
    )


def taken_in(batches: int, words: WordCounts, ids: flat_extending.Ids) -> Any:
    dice = random.Random(batches)
    pieces = flat_native.Pieces(ids)
    pieces.begin(1)
    pieces.take(0, words.data, words.offsets, words.counts)
    pieces.begin(batches)  # which forgets it
    left = dict(words.items())
    for batch in range(batches):
        last = batch == batches - 1
        share = {word: weight if last else dice.choice((0, weight // 2, weight)) for word, weight in left.items()}
        left = {word: weight - share[word] for word, weight in left.items()}
        part = WordCounts.from_items((word, weight) for word, weight in share.items() if weight)
        pieces.take(batch, part.data, part.offsets, part.counts)
    return pieces


def extend_at_random(seed: int) -> None:
    """One table and one list, extended in several settings, held against the definition."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    words = WordCounts.from_items(pieces.items())
    asked: dict[str, Any] = {
        "tie_break": dice.choice(list(TieBreak)),
        "min_count": dice.choice((1, 1, 2)),
        "inheriting": inheriting,
        "veto": vetoes.named(dice.choice(VETOES)),
    }
    num_merges = len(inherited) + dice.choice((0, 5, 60, 1000))
    expected = learned_or_refused(naive_extending.train, words, num_merges, inherited=inherited, **asked)
    for guess_scale in (1.0, 3.0, HUGE_GUESS):
        settings = settings_at_random(dice)
        settings["batches"] = dice.choice((0, 1, 4))
        learned = learned_or_refused(learn, words, num_merges, inherited, guess_scale=guess_scale, **asked, **settings)
        assert learned == expected, (seed, settings)


def test_any_mixture_of_settings_extends_to_the_same_merges() -> None:
    for seed in range(25):
        extend_at_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_fuzzed_pieces_in_every_setting(seed: int) -> None:
    for case in range(150):
        extend_at_random(10_000 + 150 * seed + case)


def hold_characters_whole(seed: int) -> None:
    """One table trained under whole_characters alone, or where bytes are protected, held against the definition."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    if dice.random() < 0.3:
        pieces = {piece[dice.randint(0, 2) :] or b"a": weight for piece, weight in pieces.items()}
    words = WordCounts.from_items(pieces.items())
    names = ["whole_characters", "protected:61.e6", "[whole_characters,protected:20]", "[whole_characters,bytes:6]"]
    veto, num_merges = vetoes.named(dice.choice(names)), dice.choice((3, 10, 30, 1000))
    tie_break, min_count = dice.choice(list(TieBreak)), dice.choice((1, 1, 2))
    asked: dict[str, Any] = {"tie_break": tie_break, "min_count": min_count, "veto": veto}
    expected = naive_extending.train(words, num_merges, **asked)
    ideas: dict[str, Any] = {idea: dice.random() < 0.7 for idea in flat.IDEAS}
    assert flat.train(words, num_merges, **asked, **ideas) == expected, seed
    assert seg_status.train(words, num_merges, **asked) == expected, seed


def test_the_bound_holds_for_whole_characters() -> None:
    for seed in range(40):
        hold_characters_whole(seed)


def test_a_guess_that_was_too_high_is_noticed_and_mended() -> None:
    words = WordCounts.from_items((bytes(random.Random(seed).choices(b"abcdef ", k=40)), 1) for seed in range(40))
    inherited = naive_extending.train(words, 30)
    meter = Meter()
    assert learn(words, 200, inherited, guess_scale=HUGE_GUESS, meter=meter) == naive_extending.train(words, 200)
    assert meter.tallies["rescans"] > 0


@pytest.mark.parametrize("length", [39, 40, 41, 3000], ids=str)
def test_long_pieces_that_nothing_divides_are_encoded_as_short_ones_are(length: int) -> None:
    """Up to forty bytes between two cuts are looked through for each merge, more have a queue."""
    dice = random.Random(length)
    words = WordCounts.from_items([(bytes(dice.choices(b"aab", k=length)), 1), (b"a" * length, 2), (b"ab" * length, 1)])
    inherited = naive_extending.train(WordCounts.from_items([(bytes(dice.choices(b"aab", k=500)), 1)]), 40)
    for inheriting in ("kept", "met"):
        asked: dict[str, Any] = {"inherited": inherited, "inheriting": inheriting}
        assert flat.train(words, 60, **asked) == seg_status.train(words, 60, **asked)


CHARACTERS = "法律也"
ALONE = [half for one in map(str.encode, CHARACTERS) for half in ((one[:1], one[1:2]), (one[:2], one[2:]))]


@pytest.mark.parametrize(
    "joining",
    [
        [("律", "也"), ("法", "律")],
        # A merge from inside a character, and one of the same bytes that no character begins with.
        [("法"[:1], "律"), (b"\x95", b"\xe5"), (b"\x95\xe5", b"\xbe"), ("律", "也")],
        [(b"\x8b\xe4", b"\xb9"), ("法", "律")],
    ],
    ids=["whole", "broken", "never made"],
)
@pytest.mark.parametrize("inheriting", ["kept", "met"])
def test_characters_are_encoded_by_themselves_only_where_it_makes_no_difference(
    joining: list[tuple[Any, Any]], inheriting: str
) -> None:
    """Also where a character is complete only when its neighbour is merged already: then their pair was never met."""
    words = WordCounts.from_items([("法律也".encode(), 3), ("法律".encode(), 1), ("也法也律法律也".encode(), 2)])
    listed = [(half if isinstance(half, bytes) else half.encode() for half in pair) for pair in joining]
    merges = [(left, right) for left, right in listed]
    for seed in range(30):
        dice = random.Random(seed)
        inherited = ordered_at_random(dice, ALONE + merges)
        asked: dict[str, Any] = {"inherited": inherited, "inheriting": inheriting}
        expected = learned_or_refused(naive_extending.train, words, 30, **asked)
        assert learned_or_refused(flat.train, words, 30, **asked) == expected, inherited
        assert learned_or_refused(learn, words, 30, inherited, batches=2, inheriting=inheriting) == expected, inherited


def ordered_at_random(dice: random.Random, merges: list[Merge]) -> list[Merge]:
    """The merges in an order in which both halves of each are made before it; those left out that have none."""
    made, ordered, left = {bytes((byte,)) for byte in range(256)}, [], list(dict.fromkeys(merges))
    while ready := [merge for merge in left if set(merge) <= made]:
        ordered.append(dice.choice(ready))
        left.remove(ordered[-1])
        made.add(b"".join(ordered[-1]))
    return ordered


def test_every_width_learns_the_same_and_counts_the_same_work() -> None:
    dice = random.Random(3)
    words = WordCounts.from_items((bytes(dice.choices(b"abcdefghij :", k=60)), dice.randint(1, 3)) for _ in range(400))
    inherited = flat.train(words, 100)
    learned = []
    for threads in (1, 2, 3, 5):
        meter = Meter()
        merges = learn(words, 400, inherited, threads=threads, part=1000, meter=meter, veto=vetoes.superbpe)
        learned.append((merges, {**meter.tallies, "pairs_kept": 0}))
    assert all(each == learned[0] for each in learned)
    assert learned[0][0] == seg_status.train(words, 400, inherited=inherited, veto=vetoes.superbpe)


def test_ids_that_no_merge_makes_and_pieces_before_they_begin_are_refused() -> None:
    for lefts, rights in (([99, 2**31], [100, 100]), ([99, 100], [100, 259]), ([1], [100]), ([99], [0])):
        with pytest.raises(ValueError, match=f"merge {len(lefts)} has a half that no merge before it makes"):
            flat_native.Pieces((array("I", lefts), array("I", rights)))
    with pytest.raises(ValueError, match="2 left halves need as many right halves, not 1"):
        flat_native.Pieces((array("I", [99, 100]), array("I", [100])))
    words, ids = WordCounts.from_items([(b"ab", 1)]), (array("I", [99]), array("I", [100]))
    how: dict[str, Any] = {"tie_break": 0, "min_count": 1, "threads": 1, "inherited": ids}
    with pytest.raises(ValueError, match=r"call Pieces\.begin"):
        flat_native.Pieces(ids).take(0, words.data, words.offsets, words.counts)
    with pytest.raises(ValueError, match=r"call Pieces\.begin"):
        flat_native.train([], 9, Meter(), pieces=flat_native.Pieces(ids), **how)


def test_what_a_veto_or_the_meter_raises_comes_through_and_the_meter_can_stop() -> None:
    def fails(left: bytes, right: bytes) -> bool:
        raise LookupError(left + right)

    with pytest.raises(LookupError, match="ab"):
        flat.train(WordCounts.from_items([(b"ab", 1)]), 5, veto=fails)
    words = WordCounts.from_items([(bytes(random.Random(0).choices(b"ACGT", k=700_000)), 1)])
    with pytest.raises(KeyboardInterrupt):
        flat.train(words, 10**6, Recorder(interrupt), veto=vetoes.superbpe)
    stopped = flat.train(words, 10**6, Recorder(lambda: False), veto=vetoes.superbpe)
    assert stopped == flat.train(words, len(stopped))


@pytest.mark.slow
def test_inherited_merges_beyond_sixteen_bits_are_numbered() -> None:
    inherited = [(bytes((one,)), bytes((other,))) for one in range(256) for other in range(256)]
    words = WordCounts.from_items([(b"abcdefgh", 3), (b"efghabcd", 2)])
    assert flat.train(words, 2**17, inherited=inherited) == seg_status.train(words, 2**17, inherited=inherited)


def test_a_pipe_is_read_once_though_the_list_asks_first_what_is_met(tmp_path: Path) -> None:
    pipe, text = tmp_path / "pipe", b"abcabd ab abc"
    os.mkfifo(pipe)
    asked: dict[str, Any] = {"inherited": [(b"a", b"b"), (b"b", b"c"), (b"a", b"b")], "inheriting": "met"}
    writing = threading.Thread(target=pipe.write_bytes, args=(text,))
    writing.start()
    merges = flat_file.train(Corpus(str(pipe), ()), 9, **asked)
    writing.join()
    (tmp_path / "text").write_bytes(text)
    assert merges == naive_extending.train(native.native(Corpus(str(tmp_path / "text"), ())), 9, **asked)


@pytest.mark.slow
def test_an_interpreter_ends_while_threads_wait_for_it(tmp_path: Path) -> None:
    """Threads that hand tables over want the GIL all the time, so some wait for it when the end comes."""
    dice = random.Random(0)
    text = tmp_path / "text"
    text.write_text("".join("".join(dice.choices("ab: c", k=60)) + "\n" for _ in range(20_000)), encoding="utf-8")
    program = f"""
import threading, time
from variants import flat_file
from variants.contract import Corpus
from variants.counting import native
class Slow:
    def __del__(self, sleep=time.sleep): sleep(0.3)
kept = Slow()
native.PART_BYTES, native.PARTS, native.SMALLEST_RANGE = 1 << 14, 1 << 10, 1000
corpus = Corpus({str(text)!r}, (), {registry.cards("pattern")["line"]["regex"]!r})
def train():
    while True: flat_file.train(corpus, 1000, threads=2, inherited=[(b"a", b"b")])
flat_file.before_the_clock()
for _ in range(6): threading.Thread(target=train, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(6):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_pieces_are_merged_beyond_sixteen_bits() -> None:
    """How many merges come is not known when the first piece is taken: a file may be longer than its size says."""
    dice = random.Random(1)
    words = WordCounts.from_items((dice.randbytes(4), dice.randint(1, 9)) for _ in range(30_000))
    inherited = heap.train(words, 100)
    assert len(expected := seg_status.train(words, 2**20, inherited=inherited)) > 2**16
    assert learn(words, 2**20, inherited, batches=2) == expected


@pytest.mark.parametrize(("pattern", "errors"), [("superbpe", "strict"), ("line", "replace"), (r"\S+|\s+", "replace")])
def test_a_file_is_extended_part_by_part(
    pattern: str, errors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, text, counted = random.Random(0), tmp_path / "book.txt", Meter()
    lines = ["".join(dice.choices("ab: 1é法", k=dice.randint(0, 30))) + "\n" for _ in range(120)]
    text.write_bytes("".join(lines + lines[:40]).encode() + (b"\xff a\n" if errors == "replace" else b""))
    cards = registry.cards("pattern")
    corpus = Corpus(str(text), ("::",), cards[pattern]["regex"] if pattern in cards else pattern, errors, True)
    words = native.native(corpus, counted)
    asked: dict[str, Any] = {"inherited": naive_extending.train(words, 40), "inheriting": "met"}
    expected = naive_extending.train(words, 120, **asked)
    for name, value in (("BUFFER_BYTES", 64), ("SMALLEST_RANGE", 1), ("PART_BYTES", 1)):
        monkeypatch.setattr(native, name, value)
    for threads in (1, 3):
        meter = Meter()
        assert flat_file.train(corpus, 120, meter, threads=threads, **asked) == expected
        assert meter.tallies["documents"] == counted.tallies["documents"]


def driver_case(seed: int) -> tuple[str, list[Merge]]:
    """A case as tests/support/flat_driver.cpp reads it, and what the definition learns."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    words = WordCounts.from_items(pieces.items())
    name = dice.choice(VETOES)
    veto = vetoes.named(name)
    num_merges, tie_break = len(inherited) + dice.choice((5, 50, 1000)), dice.choice(list(TieBreak))
    columns = [words.data, words.offsets, words.counts]
    try:
        lefts, rights = flat_extending.numbered(
            inherited, inheriting, num_merges, lambda ids: flat.pieces_of(ids, columns).met()
        )
    except ValueError:
        return driver_case(seed + 1_000_000)
    switches = 0b00111 if dice.random() < 0.5 else dice.randrange(32)
    numbers: list[object] = [num_merges, 1, list(TieBreak).index(tie_break), dice.randint(1, 3), switches]
    numbers += [dice.choice((1, 30, 1e9)), dice.choice((1, 2)), int(inheriting == "met"), int(veto is swapped_words)]
    numbers += [*veto_numbers(veto), len(lefts)]
    numbers += [half for pair in zip(lefts, rights, strict=True) for half in pair]
    expected = naive_extending.train(
        words, num_merges, tie_break=tie_break, inherited=inherited, inheriting=inheriting, veto=veto
    )
    return case_text(numbers, pieces), expected


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", OF_FLAT)
def test_sanitizers_find_nothing(sanitizers: str, programs: Path, tmp_path: Path) -> None:
    threads = 3 if sanitizers == "thread" else 1
    listed = [driver_case(seed) for seed in range(50_000, 50_000 + 300 // threads)]
    cases = tmp_path / "cases"
    cases.write_text("".join(text for text, _ in listed))
    answers = printed_merges(sanitized("flat_driver.cpp", sanitizers, programs), cases, str(threads), first_byte=2)
    assert answers == [expected for _, expected in listed]
