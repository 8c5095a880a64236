# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Calls grid.hpp from Python: words in, merges and measurements out, the GIL released in between.

The points themselves are in modules of their own (grid_module.hpp), which hand over what they have as a capsule.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as flag
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from variants.contract import Unavailable

include "training.pxi"


cdef extern from "grid.hpp" namespace "grid" nogil:
    const uint32_t first_byte
    const int schedules
    const char* capsule_name()

    cdef enum class Schedule(int):
        pass

    cdef struct Options:
        uint64_t num_merges
        int64_t min_count
        TieBreak tie_break
        flag reuse_returned
        flag push_grown
        size_t threads
        Schedule schedule
        int chunk

    cdef cppclass Answer(Training):
        pass

    cdef cppclass Member:
        const char* hash_map
        const char* hash
        const char* index
        const char* maximum
        const char* update

    cdef cppclass Table:
        vector[vector[uint32_t]] words
        vector[int64_t] weights
        flag indexed
        vector[pair[uint64_t, int64_t]] pair_counts
        vector[pair[uint64_t, vector[uint32_t]]] holders

    Answer learn "grid::train"(
        const Member& member, const Words* columns, Table& table, const Options& options, Report report, void* context
    ) except +


cdef const vector[Member]* members_of(capsule) except NULL:
    """Raises Unavailable for a module that was compiled with other types."""
    if not PyCapsule_IsValid(capsule, capsule_name()):
        raise Unavailable("a module of the grid is older than its sources; python -m pip install -e . builds it")
    return <const vector[Member]*> PyCapsule_GetPointer(capsule, capsule_name())


def points(capsule):
    """What a module was compiled with: (hash map, hash, index, maximum, update) for each point, in order."""
    cdef const vector[Member]* members = members_of(capsule)
    cdef const Member* member
    cdef size_t number
    listed = []
    for number in range(members.size()):
        member = &members.at(number)
        names = (member.hash_map, member.hash, member.index, member.maximum, member.update)
        listed.append(tuple(name.decode() for name in names))
    return listed


def train(
    capsule,
    size_t point,
    word_counts,
    uint64_t num_merges,
    meter,
    *,
    int tie_break,
    int64_t min_count,
    bint reuse_returned,
    bint push_grown,
    size_t threads,
    int schedule,
    int chunk,
    objects=None,
):
    """Learn merges with one point of a module; see variants/cpp.py.

    `objects` are the words as Python's, lists of ids and of weights, perhaps with {pair: count} and {pair: numbers of words}
    behind; then the columns are not looked at.
    """
    check_rules(tie_break, min_count, threads)
    if not 0 <= schedule < schedules:
        raise ValueError(f"schedule is {schedule}; it is from 0 to {schedules - 1}")
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}; it is 1 or more")
    cdef const vector[Member]* members = members_of(capsule)
    cdef bint from_columns = objects is None
    cdef Words words
    cdef Options options = Options(
        num_merges, min_count, <TieBreak> tie_break, reuse_returned, push_grown, threads, <Schedule> schedule, chunk
    )
    cdef Answer answer
    cdef Table table
    cdef Published published = Published(meter, first_byte)
    meter.follow(published.merges)
    if not meter.progress(0):
        return published.merges
    words = columns_of(word_counts.data, word_counts.offsets, word_counts.counts)
    if objects is not None:
        table.words, table.weights, table.indexed = objects[0], objects[1], len(objects) > 2
        if table.indexed:
            table.pair_counts = [(left << 32 | right, count) for (left, right), count in objects[2].items()]
            table.holders = [(left << 32 | right, numbers) for (left, right), numbers in objects[3].items()]
        meter.lap("convert")
    with nogil:
        answer = learn(members.at(point), &words if from_columns else NULL, table, options, report, <void*> published)
        wait_if_the_interpreter_ends()
    return published.finish(answer)
