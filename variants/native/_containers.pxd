# cython: language_level=3
"""The C++ containers of the typed stage, packed pairs and the clock: all that its loop needs without the GIL.

The containers are declared without `except +`, which would make every call reach for Python: an allocation that fails
is caught once, round the whole loop.
"""

from libc.stdint cimport uint32_t, uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "<vector>" namespace "std" nogil:
    cdef cppclass vector[T]:
        T& operator[](size_t)
        T& back()
        size_t size()
        bint empty()
        void push_back(const T&)
        void pop_back()
        void resize(size_t)
        void clear()
        void swap(vector[T]&)

cdef extern from "<unordered_map>" namespace "std" nogil:
    cdef cppclass unordered_map[K, V]:
        V& operator[](const K&)
        size_t count(const K&)
        size_t erase(const K&)
        size_t size()


cdef inline uint64_t packed(uint32_t left, uint32_t right) noexcept nogil:
    return (<uint64_t> left << 32) | right


cdef inline double clock() noexcept nogil:
    """Seconds, of the clock that the meter reads too."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9
