# cython: language_level=3, boundscheck=False, wraparound=False
"""Runs of sorted word counts for Python: columns as memoryviews, files as descriptors, errors as OSError."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp cimport bool as flag
from libcpp.vector cimport vector

from mmap import mmap

include "job.pxi"


cdef extern from * nogil:
    """
    #include "word_runs.hpp"

    static void raise_in_python() {
        try {
            throw;
        } catch (const std::system_error& error) {
            errno = error.code().value();
            PyErr_SetFromErrno(PyExc_OSError);
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
        } catch (const std::exception& error) {
            PyErr_SetString(PyExc_ValueError, error.what());
        }
    }
    """
    void raise_in_python()

    void write_one_run "word_runs::write_run"(const Words&, int file) except +raise_in_python
    void merge_tables "word_runs::merge"(
        const vector[Words]&, const vector[flag]& mapped, int data, int offsets, int counts
    ) except +raise_in_python


def write_run(data, offsets, counts, int file):
    """Write the words with their counts to `file`, in the order of their bytes."""
    cdef Words table = words_of(data, offsets, counts)
    with nogil:
        write_one_run(table, file)


def merge(tables, int data, int offsets, int counts):
    """Write the sum of tables, (data, offsets, counts) each with its words in order, to three files.

    The pages of tables that are mapped from files are given back as they have been read.
    """
    cdef vector[Words] given
    cdef vector[flag] mapped
    held = [tuple(map(memoryview, table)) for table in tables]  # keeps the buffers while they are read
    for columns in held:
        given.push_back(words_of(columns[0], columns[1], columns[2]))
        mapped.push_back(all(map(is_mapped, columns)))
    with nogil:
        merge_tables(given, mapped, data, offsets, counts)


def is_mapped(column):
    """Whether a memoryview is of a mapping that nobody can write, so that its pages can be read again."""
    return isinstance(column.obj, mmap) and memoryview(column.obj).readonly
