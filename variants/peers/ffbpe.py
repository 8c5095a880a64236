"""ffbpe: `WordCounter` and `BpeTrainer`, fed whole documents. The counter's words go to the trainer within the package.

Its other way in, `get_words_from_file`, copies all words into a dictionary of Python and cuts the file where a word may
be cut with it. It tells tokens in order and not what they were made of.
"""

from __future__ import annotations

from variants.contract import GPT2_PATTERN, NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding
from variants.peers import documents, expect_text_work, installed, use_threads, with_version
from variants.peers.parts import BYTES, merges_of

NAME = "ffbpe"
ffbpe = installed("ffbpe")

RULES = {
    TieBreak.RAW_BYTES: {"initial_alphabet": "raw", "tie_break": "smallest_pair_id"},
    TieBreak.HUGGINGFACE: {"initial_alphabet": "byte_level", "tie_break": "smallest_pair_id"},
    TieBreak.GREATEST_BYTES: {"initial_alphabet": "raw", "tie_break": "largest_content"},
}


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on the documents of a corpus. Raises Unavailable where the package is absent or lacks what is asked."""
    expect_text_work(NAME, ffbpe, corpus, tie_break, RULES, min_count)
    use_threads(threads)
    own_pattern = corpus.pattern == GPT2_PATTERN  # its default, for which it has a scanner
    counter = ffbpe.PreTokenizer([], pat_str=None if own_pattern else corpus.pattern).word_counter()
    counter.add_source(documents(corpus))
    trainer = ffbpe.BpeTrainer([], **RULES[tie_break])
    trainer.add_word_counter(counter)
    trainer.train(256 + num_merges)
    learned = sorted(trainer.vocab.items(), key=lambda item: item[1])
    merges = merges_of([*BYTES, *(token for token, rank in learned if rank >= 256)])
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(
        with_version(NAME),
        "WordCounter.add_source, a string for each document, then BpeTrainer.add_word_counter",
        BY_THE_PATTERN,
        CUT_OUT,
        "by initial_alphabet and tie_break, which follow our tie_break",
    )
