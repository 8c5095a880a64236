"""The one way for the columns of word counts into compiled code: checked before anything is read by them."""

cdef extern from "columns.hpp" namespace "native" nogil:
    cdef cppclass Words:
        const uint8_t* bytes
        size_t size
        const int64_t* offsets
        const uint64_t* counts
        size_t number

    void check_columns(const Words& words) except +

cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()
    int in_python(...)   # a function with the GIL, and its arguments


cdef Words columns_of(
    const unsigned char[::1] data, const long long[::1] offsets, const unsigned long long[::1] counts
) except *:
    """The buffers of WordCounts as C++ sees them; they must live as long as it looks. Raises ValueError for bad ones."""
    cdef Words words
    if offsets.shape[0] != counts.shape[0] + 1:
        raise ValueError(f"{counts.shape[0]} counts need {counts.shape[0] + 1} offsets, not {offsets.shape[0]}")
    words.bytes = &data[0] if data.shape[0] else NULL
    words.size = data.shape[0]
    words.offsets = <const int64_t*> &offsets[0]
    words.counts = <const uint64_t*> &counts[0] if counts.shape[0] else NULL
    words.number = counts.shape[0]
    with nogil:
        check_columns(words)
    return words
