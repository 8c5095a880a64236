# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Calls replay.hpp from Python without the GIL: buffers and ids in, the number of right merges out."""

from collections import namedtuple

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as flag
from libcpp.string cimport string
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector


cdef extern from "job.hpp" namespace "native" nogil:
    const int tie_breaks

    cdef enum class TieBreak(int):
        pass

    cdef cppclass Words:
        const uint8_t* bytes
        size_t size
        const int64_t* offsets
        const uint64_t* counts
        size_t number


cdef extern from "replay_judge.hpp" namespace "replay" nogil:
    cdef cppclass Claims:
        const uint32_t* lefts
        const uint32_t* rights
        size_t count
        size_t inherited
        const uint8_t* stays

    cdef cppclass Veto:
        flag superbpe
        flag whole_characters
        uint64_t most_bytes
        uint64_t most_characters
        unordered_set[string] protected_tokens
        flag (*own)(void* context, const string& left, const string& right)
        void* context

    cdef cppclass Pair:
        uint32_t left
        uint32_t right

    cdef cppclass Question:
        uint64_t num_merges
        int64_t min_count
        TieBreak tie_break
        flag any_choice
        Veto veto
        flag all_pairs
        vector[Pair] asked
        double guess_scale
        flag wide_symbols
        flag wide_positions

    cdef cppclass Judgement_ "replay::Judgement":
        uint64_t right
        flag too_few
        uint64_t merged
        uint64_t work
        vector[uint8_t] met
        vector[int64_t] counts
        vector[uint64_t] sharing
        int64_t highest
        vector[Pair] best
        vector[int64_t] asked

    ctypedef flag (*GoOn)(void* context, uint64_t done)

    Judgement_ judge_natively "replay::judge"(
        const Words& words, const Claims& claims, const Question& question, GoOn go_on, void* context
    ) except +


cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()
    int in_python(...)   # a function with the GIL, and its arguments


cdef class Listener:
    """What is called on the way, and what that raised."""

    cdef object on_progress
    cdef object veto
    cdef object raised


cdef flag go_on(void* context, uint64_t done) noexcept nogil:
    return in_python(report, context, done)


cdef flag report(void* context, uint64_t done) noexcept with gil:
    cdef Listener listener = <Listener> context
    try:
        if listener.on_progress is not None:
            listener.on_progress(done)
        return listener.raised is None
    except BaseException as error:
        listener.raised = error
        return False


cdef flag refuses(void* context, const string& left, const string& right) noexcept nogil:
    return in_python(ask, context, &left, &right)


cdef flag ask(void* context, const string* left, const string* right) noexcept with gil:
    cdef Listener listener = <Listener> context
    cdef bytes left_bytes, right_bytes
    try:
        left_bytes, right_bytes = left[0], right[0]
        return bool(listener.veto(left_bytes, right_bytes))
    except BaseException as error:
        listener.raised = error
        return True


Judgement = namedtuple("Judgement", "right too_few merged work met counts sharing highest best asked")


def judge(
    const unsigned char[::1] data,
    const long long[::1] offsets,
    const unsigned long long[::1] counts,
    const unsigned int[::1] lefts,
    const unsigned int[::1] rights,
    *,
    uint64_t num_merges,
    int64_t min_count=1,
    tie_break=None,
    on_progress=None,
    const unsigned char[::1] stays=b"",
    veto=None,
    bint all_pairs=False,
    asked=(),
    double guess_scale=1.0,
    bint wide_symbols=False,
    bint wide_positions=False,
):
    """Return a Judgement, see replay_job.hpp.

    `lefts` and `rights` are ids of tokens: bytes by their values, then the merged tokens in order, from 256 on. Without a
    `tie_break` each choice among equals is right. `stays` has a byte for each inherited merge, which come first: 0 if its pair
    is claimed never to have occurred. `asked` are pairs of ids.

    Raises what `on_progress` and a veto of the user's own raise, ValueError for invalid columns or ids, MemoryError.
    """
    cdef Words words
    cdef Claims claims
    cdef Question question
    cdef Judgement_ judgement
    cdef Pair pair
    cdef Listener listener = Listener()
    listener.on_progress = on_progress
    words.bytes = &data[0] if data.shape[0] else NULL
    words.size = data.shape[0]
    words.offsets = <const int64_t*> &offsets[0]
    words.counts = <const uint64_t*> &counts[0] if counts.shape[0] else NULL
    words.number = counts.shape[0]
    if offsets.shape[0] != counts.shape[0] + 1:
        raise ValueError(f"{counts.shape[0]} counts need {counts.shape[0] + 1} offsets, not {offsets.shape[0]}")
    if lefts.shape[0] != rights.shape[0]:
        raise ValueError("each merge has a left and a right token")
    if min_count < 1:
        raise ValueError(f"min_count is {min_count}; it must be 1 or more")
    if tie_break is not None and not 0 <= tie_break < tie_breaks:
        raise ValueError(f"tie_break is {tie_break}; it must be from 0 to {tie_breaks - 1}")
    claims.count = lefts.shape[0]
    claims.lefts = &lefts[0] if claims.count else NULL
    claims.rights = &rights[0] if claims.count else NULL
    claims.inherited = stays.shape[0]
    claims.stays = &stays[0] if claims.inherited else NULL
    if veto is not None:
        question.veto.superbpe, question.veto.whole_characters = veto.superbpe, veto.whole_characters
        question.veto.most_bytes, question.veto.most_characters = veto.most_bytes, veto.most_characters
        for token in veto.protected:
            question.veto.protected_tokens.insert(<string> token)
        listener.veto = veto.own
        if veto.own is not None:
            question.veto.own, question.veto.context = refuses, <void*> listener
    question.num_merges = num_merges
    question.min_count = min_count
    question.any_choice = tie_break is None
    question.tie_break = <TieBreak> (<int> (tie_break or 0))
    question.all_pairs = all_pairs
    for pair.left, pair.right in asked:
        question.asked.push_back(pair)
    question.guess_scale = guess_scale
    question.wide_symbols = wide_symbols
    question.wide_positions = wide_positions
    with nogil:
        judgement = judge_natively(words, claims, question, go_on, <void*> listener)
        wait_if_the_interpreter_ends()
    if listener.raised is not None:
        raise listener.raised
    return Judgement(
        judgement.right,
        judgement.too_few,
        judgement.merged,
        judgement.work,
        [bool(one) for one in judgement.met],
        list(judgement.counts),
        list(judgement.sharing),
        judgement.highest,
        [(best.left, best.right) for best in judgement.best],
        list(judgement.asked),
    )


def follow(const unsigned int[::1] table, uint32_t entry, uint64_t steps):
    """Go from an entry so many times to the one that it names; return the last. Each step waits for the one before, so many of
    them take as long as that many look-ups in turn.
    """
    with nogil:
        for _ in range(steps):
            entry = table[entry]
    return entry
