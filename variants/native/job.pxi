"""The columns of word counts as C++ sees them."""

cdef extern from "job.hpp" namespace "native" nogil:
    cdef cppclass Words:
        const uint8_t* bytes
        size_t size
        const int64_t* offsets
        const uint64_t* counts
        size_t number


cdef Words words_of(
    const unsigned char[::1] data, const long long[::1] offsets, const unsigned long long[::1] counts
) except *:
    """The buffers must live as long as C++ looks. Raises ValueError for columns that do not go together."""
    cdef Words words
    if offsets.shape[0] != counts.shape[0] + 1:
        raise ValueError(f"{counts.shape[0]} counts need {counts.shape[0] + 1} offsets, not {offsets.shape[0]}")
    words.bytes = &data[0] if data.shape[0] else NULL
    words.size = data.shape[0]
    words.offsets = <const int64_t*> &offsets[0]
    words.counts = <const uint64_t*> &counts[0] if counts.shape[0] else NULL
    words.number = counts.shape[0]
    return words
