"""What every compiled trainer's door shares: the columns in, the merges out, and the meter asked on the way."""

cdef extern from "job.hpp" namespace "native" nogil:
    cdef enum class TieBreak(int):
        pass

    cdef cppclass Words:
        const uint8_t* bytes
        size_t size
        const int64_t* offsets
        const uint64_t* counts
        size_t number

    cdef cppclass Merge:
        uint32_t left
        uint32_t right

    cdef enum Phase:
        convert, init, copy, max, update, phase_count

    cdef cppclass Training:
        vector[Merge] merges
        double* seconds

    ctypedef flag (*Report)(void* context, const Training& so_far)


cdef Words columns_of(const unsigned char[::1] data, const long long[::1] offsets, const unsigned long long[::1] counts):
    """The buffers of WordCounts as C++ sees them; they must live as long as it looks."""
    cdef Words words
    words.bytes = &data[0] if data.shape[0] else NULL
    words.size = data.shape[0]
    words.offsets = <const int64_t*> &offsets[0]
    words.counts = <const uint64_t*> &counts[0] if counts.shape[0] else NULL
    words.number = counts.shape[0]
    return words


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


cdef flag report(void* context, const Training& so_far) noexcept with gil:
    """Called from C++. What Python raises here, Ctrl-C among it, ends the training and is raised again after it."""
    cdef Learned learned = <Learned> context
    try:
        learned.take(so_far)
        return <bint> learned.meter.progress(len(learned.merges))
    except BaseException as error:
        learned.raised = error
        return False
