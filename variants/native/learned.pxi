"""What the doors of compiled trainers share: the columns in, the merges out, and the meter asked on the way."""

include "columns.pxi"

cdef extern from "job.hpp" namespace "native" nogil:
    cdef enum class TieBreak(int):
        pass

    cdef cppclass Merge:
        uint32_t left
        uint32_t right

    cdef enum Phase:
        convert, init, copy, max, update, phase_count

    cdef cppclass Training:
        vector[Merge] merges
        double* seconds

    ctypedef flag (*Report)(void* context, const Training& so_far)


cdef class Learned:
    """What Python knows so far: the merges as bytes, and the seconds already given to the meter."""

    cdef object meter
    cdef readonly list merges
    cdef list tokens   # by C++'s ids
    cdef double[<int> phase_count] given
    cdef object raised

    def __init__(self, meter, Py_ssize_t first_byte):
        self.meter = meter
        self.merges = []
        self.tokens = [b""] * first_byte + [bytes((byte,)) for byte in range(256)]
        self.raised = None

    cdef void take(self, const Training& answer):
        """Bring list and meter up to date with C++."""
        cdef size_t number
        for number in range(len(self.merges), answer.merges.size()):
            left = self.tokens[answer.merges[number].left]
            right = self.tokens[answer.merges[number].right]
            self.tokens.append(left + right)
            self.merges.append((left, right))
        for phase, name in (
            (convert, "convert"), (init, "init"), (copy, "copy"), (max, "max"), (update, "update"),
        ):
            if answer.seconds[<int> phase] > self.given[<int> phase]:
                self.meter.add(name, answer.seconds[<int> phase] - self.given[<int> phase])
                self.given[<int> phase] = answer.seconds[<int> phase]


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
