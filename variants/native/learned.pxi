"""What the doors of compiled trainers share: the columns in, the merges out, and the meter asked on the way."""

import time

from variants.contract import Merges

include "columns.pxi"

cdef extern from "job.hpp" namespace "native" nogil:
    cdef enum class TieBreak(int):
        pass

    cdef cppclass Merge:
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


cdef class Learned:
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
        self.raised = None

    cdef void take(self, const Training& answer):
        """Bring merges and meter up to date with C++."""
        cdef size_t number
        cdef vector[uint32_t] ids
        for number in range(len(self.merges), answer.merges.size()):
            ids.push_back(answer.merges[number].left - self.first_byte)
            ids.push_back(answer.merges[number].right - self.first_byte)
        self.merges.ids.frombytes((<const char*> ids.data())[:ids.size() * sizeof(uint32_t)])
        for phase, name in (
            (convert, "convert"), (init, "init"), (copy, "copy"), (max, "max"), (update, "update"),
        ):
            if answer.seconds[<int> phase] > self.given[<int> phase]:
                self.meter.add(name, answer.seconds[<int> phase] - self.given[<int> phase])
                self.given[<int> phase] = answer.seconds[<int> phase]


    cdef finish(self, const Training& answer):
        """The merges, when C++ has ended; raises what Python raised meanwhile."""
        cdef size_t number
        if self.raised is not None:
            raise self.raised
        begun = time.perf_counter()
        self.take(answer)
        self.meter.add("convert", time.perf_counter() - begun)
        for number in range(answer.work.size()):
            self.meter.tally(answer.work[number].name.decode(), answer.work[number].number)
        return self.merges


cdef flag report(void* context, const Training& so_far) noexcept nogil:
    """Called from C++. What Python raises here, Ctrl-C among it, ends the training and is raised again after it."""
    return in_python(report_to_python, context, so_far)


cdef flag report_to_python(void* context, const Training& so_far) noexcept with gil:
    cdef Learned learned = <Learned> context
    try:
        learned.take(so_far)
        return <bint> learned.meter.progress(len(learned.merges))
    except BaseException as error:
        learned.raised = error
        return False
