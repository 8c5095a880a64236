# distutils: language = c++
# cython: language_level=3
"""Calls the scanner from Python: strings to bytes, columns to bytes objects, progress with the GIL."""

from cpython.buffer cimport PyBUF_WRITABLE
from libc.stdint cimport SIZE_MAX, int64_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import os


cdef extern from "scanner.hpp" namespace "scanner" nogil:
    cdef enum class Path "scanner::Path":
        portable
        avx2
        avx512
        neon

    cpp_bool supported(Path)

    cdef cppclass Memory:
        void* start

    cdef cppclass Columns "scanner::WordTable::Columns":
        Memory data          # the words' bytes end to end
        Memory offsets       # where they begin, and where the last ends; int64_t
        Memory counts        # uint64_t
        size_t words         # those that do not count included
        size_t first         # how many these are; they are first
        size_t bytes         # of the words that do not count

    ctypedef cpp_bool (*HandOver)(void* context, int64_t range, Columns& columns)

    ctypedef cpp_bool (*GoOn)(void* context, int64_t done)

    cdef cppclass Scan:
        Scan(int file, string pattern, int path, vector[int64_t] bounds, vector[string] specials,
             string numbers, string pages, string seed, size_t buffer, HandOver hand_over, size_t table_bytes,
             cpp_bool hands_over_all, void* context, size_t most_cells) except +
        void start(GoOn go_on) except +
        cpp_bool wait(double seconds)
        void stop()
        int64_t done()
        void finish() except +
        double part_reading()
        double part_handing_over()
        int error
        cpp_bool cut_off
        int64_t invalid_at
        uint64_t documents
        Columns columns

    int64_t first_cut_in(string window, int64_t from_, string pattern, vector[string] specials,
                         string numbers, string pages) except +

cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()
    int in_python(...)   # a function with the GIL, and its arguments

PATHS = {"portable": Path.portable, "avx2": Path.avx2, "avx512": Path.avx512, "neon": Path.neon}
UNTIL_END = 2**63 - 1
MOST_BUFFER = 2**40


def supported_paths():
    """The names of the paths that this machine can run, the fastest last."""
    return [name for name, path in PATHS.items() if supported(path)]


def first_cut(bytes window, int64_t start, bytes pattern, specials, tables):
    """The first safe place to cut in `window` from `start` on; its length if there is none."""
    return first_cut_in(window, start, pattern, specials, tables[0], tables[1])


cdef class Column:
    """Memory of the scanner's as a read-only buffer, freed when nobody looks at it any more."""

    cdef Memory memory
    cdef void* start            # where the buffer begins in it
    cdef const char* kind       # as in the struct module: B, q or Q
    cdef Py_ssize_t length, itemsize

    @staticmethod
    cdef Column of(Memory& memory, const char* kind, size_t itemsize, size_t first, size_t stop):
        """Takes the memory over."""
        cdef Column column = Column.__new__(Column)
        column.start = <char*> memory.start + first * itemsize
        column.memory = move(memory)
        column.kind = kind
        column.itemsize = itemsize
        column.length = stop - first
        return column

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("word counts are read-only")
        buffer.obj = self
        buffer.buf = self.start
        buffer.len = self.length * self.itemsize
        buffer.itemsize = self.itemsize
        buffer.format = <char*> self.kind
        buffer.ndim = 1
        buffer.readonly = 1
        buffer.shape = &self.length
        buffer.strides = &self.itemsize
        buffer.suboffsets = NULL
        buffer.internal = NULL


cdef tuple taken(Columns& columns):
    """The columns as memoryviews, which take them over; words that do not count are left out."""
    cdef size_t bytes_of_all = columns.bytes + (<int64_t*> columns.offsets.start)[columns.words]
    return (
        memoryview(Column.of(columns.data, b"B", 1, columns.bytes, bytes_of_all)),
        memoryview(Column.of(columns.offsets, b"q", 8, columns.first, columns.words + 1)),
        memoryview(Column.of(columns.counts, b"Q", 8, columns.first, columns.words)),
    )


cdef class Taker:
    """Who takes the words of tables, who says whether to go on, and what they raised."""

    cdef object take
    cdef object progress
    cdef object raised


cdef cpp_bool go_on(void* context, int64_t done) noexcept nogil:
    return in_python(go_on_in_python, context, done)


cdef cpp_bool go_on_in_python(void* context, int64_t done) noexcept with gil:
    cdef Taker taker = <Taker> context
    try:
        if taker.progress(done):
            return True
        taker.raised = RuntimeError("stopped")
    except BaseException as error:
        taker.raised = error
    return False


cdef cpp_bool hand_over(void* context, int64_t part, Columns& columns) noexcept nogil:
    return in_python(hand_over_to_python, context, part, columns)


cdef cpp_bool hand_over_to_python(void* context, int64_t part, Columns& columns) noexcept with gil:
    cdef Taker taker = <Taker> context
    try:
        taker.take(part, *taken(columns))
        return True
    except BaseException as error:
        taker.raised = error
        return False


def scan(int file, bounds, bytes pattern, specials, tables, str path, size_t buffer, progress,
         take=None, size_t table_bytes=0, bint takes_all=False, stop_taking=None,
         size_t most_cells=SIZE_MAX):
    """Count the ranges between `bounds`: (columns, documents, bytes, parts of the time spent, invalid, cut off).

    `columns` is None where `invalid` is the offset of a bad byte or the file was cut off. `progress` gets the bytes done
    and answers whether to go on. The parts of the time are those spent reading and in `take`. A range whose table has more
    than `table_bytes` hands it to `take`, if there is one: its number and the columns, in its own thread. What is left in
    the end is taken too if anything was, or if it `takes_all`; then `columns` holds no words. If the scan is stopped,
    `stop_taking` is called, so that no thread stays in `take`. Raises ValueError as soon as the words of a range take more
    than `most_cells`: one for each byte and one for each word.
    """
    if len(bounds) < 2:
        raise ValueError(f"{len(bounds)} bounds make no range; give at least two")
    if not all(specials):
        raise ValueError("a special token of no bytes matches everywhere; leave it out")
    if not 1 <= buffer <= MOST_BUFFER:
        raise ValueError(f"buffer is {buffer}; it is from 1 to {MOST_BUFFER} bytes")
    if path not in PATHS or not supported(PATHS[path]):
        raise ValueError(f"this machine has no path {path!r}; it has {', '.join(supported_paths())}")
    cdef unique_ptr[Scan] scan
    cdef Scan* running
    cdef cpp_bool finished = False
    cdef Taker taker = Taker()
    cdef HandOver handing_over = NULL
    taker.take = take
    taker.progress = progress
    if take is not None:
        handing_over = hand_over
    scan.reset(new Scan(file, pattern, <int> PATHS[path], bounds, specials, tables[0], tables[1],
                        os.urandom(32), buffer, handing_over, table_bytes, takes_all, <void*> taker, most_cells))
    running = scan.get()
    try:
        with nogil:
            running.start(go_on)
        while not finished:
            with nogil:
                finished = running.wait(0.1)   # seconds
            if not finished and not progress(running.done()):
                raise RuntimeError("stopped")
    except BaseException:
        # Threads that wait for a pipe would hold the destructor up; they see the flag with the next bytes. One that hands
        # a table over waits for the GIL.
        running.stop()
        if stop_taking is not None:
            stop_taking()
        with nogil:
            scan.reset()
        raise
    with nogil:
        running.finish()
    if taker.raised is not None:
        raise taker.raised
    if running.error:
        raise OSError(running.error, os.strerror(running.error))
    parts = (running.part_reading(), running.part_handing_over())
    if running.cut_off or running.invalid_at >= 0:
        return None, 0, running.done(), parts, running.invalid_at, running.cut_off
    return taken(running.columns), running.documents, running.done(), parts, -1, False
