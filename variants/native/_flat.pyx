# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""The door from Python to flat.hpp: buffers in, merges and measurements out, the GIL released in between.

No state outlives a call, so several threads may train at once. While C++ works, the merges made so far are handed over
at most ten times a second, which is also when Ctrl-C and a meter that says stop are heard.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as flag
from libcpp.vector cimport vector

import time

include "learned.pxi"


cdef extern from "flat.hpp" namespace "flat" nogil:
    const uint32_t first_byte

    cdef cppclass Options:
        uint64_t num_merges
        int64_t min_count
        TieBreak tie_break
        size_t threads
        size_t batch
        flag layout
        flag occurrence_lists
        flag accumulators
        flag pruning
        flag bucket_queue
        flag branch_free
        flag word_order
        double guess_scale
        flag wide_symbols
        flag wide_positions
        size_t part

    cdef cppclass Tallies:
        uint64_t pair_updates
        uint64_t positions_visited
        uint64_t occurrences_merged
        uint64_t stale_positions
        uint64_t table_updates
        uint64_t pairs_kept
        uint64_t pairs_pruned
        uint64_t queue_pushes
        uint64_t queue_moves
        uint64_t levels
        uint64_t rescans
        uint64_t batches
        uint64_t text_bytes
        uint64_t list_bytes
        uint64_t table_bytes

    cdef cppclass Answer(Training):
        Tallies tallies

    ctypedef void (*WordsRead)(void* context)

    Answer learn "flat::train"(
        const Words& words, Options options, Report report, void* context, WordsRead words_read
    ) except +


cdef class LearnedFromWords(Learned):
    """Holds the words until they stand in the text."""

    cdef const unsigned char[::1] data
    cdef const long long[::1] offsets
    cdef const unsigned long long[::1] counts


cdef void words_read(void* context) noexcept nogil:
    wait_if_the_interpreter_ends()
    let_go_of_words(context)


cdef void let_go_of_words(void* context) noexcept with gil:
    cdef LearnedFromWords learned = <LearnedFromWords> context
    learned.data = None
    learned.offsets = None
    learned.counts = None


def train(
    list columns,
    uint64_t num_merges,
    meter,
    *,
    int tie_break,
    int64_t min_count,
    size_t threads,
    size_t batch,
    bint layout,
    bint occurrence_lists,
    bint accumulators,
    bint pruning,
    bint bucket_queue,
    bint branch_free,
    bint word_order,
    double guess_scale=1.0,
    bint wide_symbols=False,
    bint wide_positions=False,
    size_t part=1 << 22,
):
    """Learn merges from the columns of word counts, which are taken out of the list; see variants/flat.py."""
    cdef Words words
    cdef Options options
    cdef Answer answer
    cdef LearnedFromWords learned = LearnedFromWords(meter, first_byte)
    learned.data, learned.offsets, learned.counts = columns
    columns.clear()
    words = columns_of(learned.data, learned.offsets, learned.counts)
    options.num_merges = num_merges
    options.min_count = min_count
    options.tie_break = <TieBreak> tie_break
    options.threads = threads
    options.batch = batch
    options.layout = layout
    options.occurrence_lists = occurrence_lists
    options.accumulators = accumulators
    options.pruning = pruning
    options.bucket_queue = bucket_queue
    options.branch_free = branch_free
    options.word_order = word_order
    options.guess_scale = guess_scale
    options.wide_symbols = wide_symbols
    options.wide_positions = wide_positions
    options.part = part
    meter.follow(learned.merges)
    if not meter.progress(0):
        return learned.merges
    with nogil:
        answer = learn(words, options, report, <void*> learned, words_read)
        wait_if_the_interpreter_ends()
    if learned.raised is not None:
        raise learned.raised
    begun = time.perf_counter()
    learned.take(answer)
    meter.add("convert", time.perf_counter() - begun)
    for name, tally in (
        ("pair_updates", answer.tallies.pair_updates),
        ("positions_visited", answer.tallies.positions_visited),
        ("occurrences_merged", answer.tallies.occurrences_merged),
        ("stale_positions", answer.tallies.stale_positions),
        ("table_updates", answer.tallies.table_updates),
        ("pairs_kept", answer.tallies.pairs_kept),
        ("pairs_pruned", answer.tallies.pairs_pruned),
        ("queue_pushes", answer.tallies.queue_pushes),
        ("queue_moves", answer.tallies.queue_moves),
        ("levels", answer.tallies.levels),
        ("rescans", answer.tallies.rescans),
        ("batches", answer.tallies.batches),
        ("text_bytes", answer.tallies.text_bytes),
        ("list_bytes", answer.tallies.list_bytes),
        ("table_bytes", answer.tallies.table_bytes),
    ):
        meter.tally(name, tally)
    return learned.merges
