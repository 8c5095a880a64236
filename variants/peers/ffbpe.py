"""ffbpe: `WordCounter` and `BpeTrainer`, fed whole documents. The counter's words go to the trainer
within the package.

Its other way in, `get_words_from_file`, copies all words into a dictionary of Python and cuts the
file where a word may be cut with it. It tells tokens in order and not what they were made of.
"""

from __future__ import annotations

from variants.contract import GPT2_PATTERN, Corpus, Merge, TieBreak
from variants.peers import BYTES, Peer, merges_of, stretches

RULES = {
    TieBreak.RAW_BYTES: {"initial_alphabet": "raw", "tie_break": "smallest_pair_id"},
    TieBreak.HUGGINGFACE: {"initial_alphabet": "byte_level", "tie_break": "smallest_pair_id"},
    TieBreak.GREATEST_BYTES: {"initial_alphabet": "raw", "tie_break": "largest_content"},
}
WAY_IN = "WordCounter.add_source, a string for each document, then BpeTrainer.add_word_counter"
PEER = Peer(
    "ffbpe", "ffbpe", WAY_IN, "by initial_alphabet and tie_break, which follow our tie_break", RULES
)
feeding = PEER.feeding


@PEER.trainer
def train(
    corpus: Corpus, num_merges: int, *, tie_break: TieBreak = TieBreak.RAW_BYTES
) -> list[Merge]:
    """Train on the documents of a corpus."""
    own_pattern = corpus.pattern == GPT2_PATTERN  # its default, for which it has a scanner
    counter = PEER.package.PreTokenizer(
        [], pat_str=None if own_pattern else corpus.pattern
    ).word_counter()
    counter.add_source(stretches(corpus))
    trainer = PEER.package.BpeTrainer([], **RULES[tie_break])
    trainer.add_word_counter(counter)
    trainer.train(256 + num_merges)
    learned = sorted(trainer.vocab.items(), key=lambda item: item[1])
    return merges_of([*BYTES, *(token for token, rank in learned if rank >= 256)])
