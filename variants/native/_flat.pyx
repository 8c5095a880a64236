# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Calls flat.hpp from Python: buffers in, merges and measurements out, the GIL released in between."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as flag
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

import os

include "training.pxi"


cdef extern from "flat.hpp" namespace "flat" nogil:
    const uint32_t first_byte

    cdef struct Options:
        uint64_t num_merges
        int64_t min_count
        TieBreak tie_break
        size_t threads
        unsigned ideas
        double guess_scale
        flag wide_symbols
        size_t part

    cdef cppclass Answer(Training):
        pass

    ctypedef void (*WordsRead)(void* context)

    cdef cppclass Bytes:
        const uint8_t* data
        size_t size

    ctypedef int (*Ask "flat::Veto::Ask")(void* context, Bytes left, Bytes right)

    cdef cppclass Veto:
        flag superbpe
        flag whole_characters
        uint64_t most_bytes
        uint64_t most_characters
        unordered_set[string] protected_tokens
        Ask ask

    flag every_word_is_whole "flat::are_whole"(const Words& words)

    Answer learn "flat::train"(
        const Words& words, Options options, Report report, void* context, WordsRead words_read, const Veto& veto
    ) except +

    cdef cppclass Extension:
        flag drops
        Veto veto

    cdef cppclass Seed "scanner::Seed":
        uint64_t* values

    cdef cppclass PiecesRead "flat::Pieces":
        PiecesRead(const Merge* merges, size_t number, const Seed& seed) except +
        void begin(size_t parts) except +
        flag take_unless_stopped(size_t part, const Words& batch) except +
        void ask_by(flag (*go_on)(void* context), void* context) except +

    Answer extend "flat::extend"(
        PiecesRead& pieces, Options options, const Extension& extension, Report report, void* context,
        const Words* words, WordsRead words_read
    ) except +


cdef class PublishedFromWords(Published):
    """Holds the words until they are in the text, and the veto that is called."""

    cdef object veto
    cdef const unsigned char[::1] data
    cdef const long long[::1] offsets
    cdef const unsigned long long[::1] counts


cdef void words_read(void* context) noexcept nogil:
    in_python(let_go_of_words, context)


cdef void let_go_of_words(void* context) noexcept with gil:
    cdef PublishedFromWords published = <PublishedFromWords> context
    published.data = None
    published.offsets = None
    published.counts = None


cdef int ask(void* context, Bytes left, Bytes right) noexcept nogil:
    return in_python(ask_in_python, context, left, right)


cdef int ask_in_python(void* context, Bytes left, Bytes right) noexcept with gil:
    cdef PublishedFromWords published = <PublishedFromWords> context
    try:
        return bool(published.veto(left.data[:left.size], right.data[:right.size]))
    except BaseException as error:
        published.raised = error
        return -1


cdef vector[Merge] merges_of(const unsigned int[::1] lefts, const unsigned int[::1] rights) except *:
    """Merges from C++'s ids of their halves. Raises ValueError for an id that is not a byte's or an earlier merge's."""
    cdef vector[Merge] merges
    cdef Py_ssize_t number
    if lefts.shape[0] != rights.shape[0]:
        raise ValueError(f"{lefts.shape[0]} left halves need as many right halves, not {rights.shape[0]}")
    for number in range(lefts.shape[0]):
        if not (first_byte <= lefts[number] < first_byte + 256 + number > rights[number] >= first_byte):
            raise ValueError(f"merge {number + 1} has a half that no merge before it makes")
        merges.push_back(Merge(lefts[number], rights[number]))
    return merges


cdef class Pieces:
    """The pieces of a text that is being read, encoded by the merges to go on from as they come."""

    cdef unique_ptr[PiecesRead] pieces
    cdef bint stopped
    cdef object raised   # by a signal, while pieces were taken

    def __cinit__(self, inherited):
        cdef vector[Merge] merges = merges_of(inherited[0], inherited[1])
        cdef Seed seed
        cdef bytes random = os.urandom(sizeof(Seed))
        memcpy(&seed, <const char*> random, sizeof(Seed))
        self.pieces.reset(new PiecesRead(merges.data(), merges.size(), seed))
        self.pieces.get().ask_by(go_on_taking, <void*> self)

    def begin(self, size_t parts):
        """Forget what was taken; from here on so many threads take pieces."""
        if parts < 1:
            raise ValueError(f"parts is {parts}; it is 1 or more")
        self.stopped = False
        self.pieces.get().begin(parts)

    def stop(self):
        """End what other threads take at once; each raises RuntimeError."""
        self.stopped = True

    def take(
        self,
        size_t part,
        const unsigned char[::1] data,
        const long long[::1] offsets,
        const unsigned long long[::1] counts,
    ):
        """Take the columns of some word counts; each of the parts by one thread at a time.

        Raises what a signal raises, and RuntimeError if it is stopped: then call `begin` before anything else.
        """
        cdef Words words = columns_of(data, offsets, counts)
        cdef flag taken
        with nogil:
            taken = self.pieces.get().take_unless_stopped(part, words)
            wait_if_the_interpreter_ends()
        if not taken:
            raised, self.raised = self.raised, None
            raise raised or RuntimeError("stopped")


cdef flag go_on_taking(void* context) noexcept nogil:
    return in_python(go_on_taking_in_python, context)


cdef flag go_on_taking_in_python(void* context) noexcept with gil:
    """False if other threads are to end, or if a signal raises, which only the main thread sees."""
    cdef Pieces pieces = <Pieces> context
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        pieces.raised = error
        pieces.stopped = True
    return not pieces.stopped


def are_whole(const unsigned char[::1] data, const long long[::1] offsets, const unsigned long long[::1] counts):
    """Whether each word of the columns is valid UTF-8."""
    cdef Words words = columns_of(data, offsets, counts)
    cdef flag whole
    with nogil:
        whole = every_word_is_whole(words)
        wait_if_the_interpreter_ends()
    return whole


def train(
    columns,
    uint64_t num_merges,
    meter,
    *,
    int tie_break,
    int64_t min_count,
    size_t threads,
    unsigned ideas=7,
    double guess_scale=1.0,
    bint wide_symbols=False,
    size_t part=1 << 22,
    Pieces pieces=None,
    bint dropping=False,
    veto=None,
):
    """Learn merges from the columns of word counts, which are taken out of the list; see variants/flat.py.

    `pieces` are the text as the merges to go on from encode it, and take the words in the columns first if there are any.
    `dropping` leaves out merges never met, and `veto` is a vetoes.Limits; without pieces it may refuse mixed parts of
    characters alone.
    """
    check_rules(tie_break, min_count, threads)
    if part < 1:
        raise ValueError(f"part is {part}; it is 1 or more")
    cdef Extension extension
    cdef Words words
    cdef Options options = Options(
        num_merges, min_count, <TieBreak> tie_break, threads, ideas, guess_scale, wide_symbols, part
    )
    cdef Answer answer
    cdef bint from_words = bool(columns)
    cdef PublishedFromWords published = PublishedFromWords(meter, first_byte)
    if from_words:
        published.data, published.offsets, published.counts = columns
        columns.clear()
        words = columns_of(published.data, published.offsets, published.counts)
    extension.drops = dropping
    if veto is not None:
        extension.veto.superbpe, extension.veto.whole_characters = veto.superbpe, veto.whole_characters
        extension.veto.most_bytes, extension.veto.most_characters = veto.most_bytes, veto.most_characters
        for token in veto.protected:
            extension.veto.protected_tokens.insert(<string> token)
        if veto.own is not None:
            extension.veto.ask, published.veto = ask, veto.own
    meter.follow(published.merges)
    if not meter.progress(0):
        return published.merges
    with nogil:
        if pieces is not None:
            answer = extend(pieces.pieces.get()[0], options, extension, report, <void*> published,
                           &words if from_words else NULL, words_read)
        else:
            answer = learn(words, options, report, <void*> published, words_read, extension.veto)
        wait_if_the_interpreter_ends()
    return published.finish(answer)
