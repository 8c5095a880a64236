"""What the modules of compiled trainers share: the columns in, the merges out, and the meter in between.

No state outlives a call, so several threads may train at once. While C++ works, the merges made so far are handed over
at most ten times a second, which is also when Ctrl-C and a meter that says stop are heard.
"""

import time

from variants.contract import Merges

include "job.pxi"


cdef extern from "job.hpp" namespace "native" nogil:
    void check_columns(const Words& words) except +

    const int tie_breaks

    cdef enum class TieBreak(int):
        pass

    cdef struct Merge:
        uint32_t left
        uint32_t right

    cdef enum Phase:
        convert, init, copy, max, update, phase_count

    cdef cppclass Tally:
        const char* name
        uint64_t number

    cdef cppclass Training:
        vector[Merge] merges
        double* seconds
        vector[Tally] work

    ctypedef flag (*Report)(void* context, const Training& so_far)

    cdef cppclass Progress:
        Progress(Training& training, Report report, void* context)
        void lap(Phase phase)
        void advance(uint64_t steps, Phase phase)


cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()
    int in_python(...)   # a function with the GIL, and its arguments


cdef Words columns_of(
    const unsigned char[::1] data, const long long[::1] offsets, const unsigned long long[::1] counts
) except *:
    """As words_of, and checked: raises ValueError for words that cannot be trained on."""
    cdef Words words = words_of(data, offsets, counts)
    with nogil:
        check_columns(words)
    return words


cdef int check_rules(int tie_break, int64_t min_count, size_t threads) except -1:
    """Raise ValueError for rules that no trainer knows."""
    if not 0 <= tie_break < tie_breaks:
        raise ValueError(f"tie_break is {tie_break}; it is from 0 to {tie_breaks - 1}")
    if min_count < 1:
        raise ValueError(f"min_count is {min_count}; it is 1 or more")
    if threads < 1:
        raise ValueError(f"threads is {threads}; it is 1 or more")
    return 0


cdef class Published:
    """What Python knows so far: the merges, and the seconds already given to the meter."""

    cdef object meter
    cdef readonly object merges
    cdef uint32_t first_byte   # in C++'s ids
    cdef double[<int> phase_count] given
    cdef object raised

    def __init__(self, meter, uint32_t first_byte):
        self.meter = meter
        self.merges = Merges()
        self.first_byte = first_byte

    cdef void publish(self, const Training& answer):
        """Bring merges and meter up to date with C++."""
        cdef size_t number
        cdef vector[uint32_t] ids
        for number in range(len(self.merges), answer.merges.size()):
            ids.push_back(answer.merges[number].left - self.first_byte)
            ids.push_back(answer.merges[number].right - self.first_byte)
        self.merges.ids.frombytes((<const char*> ids.data())[:ids.size() * sizeof(uint32_t)])
        for number, name in enumerate(("convert", "init", "copy", "max", "update")):   # as in Phase
            if answer.seconds[number] > self.given[number]:
                self.meter.add(name, answer.seconds[number] - self.given[number])
                self.given[number] = answer.seconds[number]

    cdef finish(self, const Training& answer):
        """The merges, when C++ has ended; raises what Python raised meanwhile."""
        cdef size_t number
        if self.raised is not None:
            raise self.raised
        begun = time.perf_counter()
        self.publish(answer)
        self.meter.add("convert", time.perf_counter() - begun)
        for number in range(answer.work.size()):
            self.meter.tally(answer.work[number].name.decode(), answer.work[number].number)
        return self.merges


cdef flag report(void* context, const Training& so_far) noexcept nogil:
    """Called from C++. What Python raises here, Ctrl-C among it, ends the training and is raised again after it."""
    return in_python(report_to_python, context, so_far)


cdef flag report_to_python(void* context, const Training& so_far) noexcept with gil:
    cdef Published published = <Published> context
    try:
        published.publish(so_far)
        return <bint> published.meter.progress(len(published.merges))
    except BaseException as error:
        published.raised = error
        return False
