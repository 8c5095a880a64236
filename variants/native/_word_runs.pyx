# cython: language_level=3, boundscheck=False, wraparound=False
"""Runs of sorted word counts for Python: columns as memoryviews, files as descriptors, errors as OSError."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import os


cdef extern from * nogil:
    """
    #include "word_runs.hpp"

    static int error_of_run(const word_runs::Table& table, int file) {
        return word_runs::error_of([&] { word_runs::write_run(table, file); });
    }
    static int error_of_runs(const word_runs::Table& table, std::size_t partitions, int file, std::vector<std::size_t>& stops) {
        return word_runs::error_of([&] { stops = word_runs::write_runs(table, partitions, file); });
    }
    static int error_of_merge(const std::vector<word_runs::Table>& tables, int data, int offsets, int counts) {
        return word_runs::error_of([&] { word_runs::merge(tables, data, offsets, counts); });
    }
    """
    cdef cppclass Table "word_runs::Table":
        const uint8_t* data
        const int64_t* offsets
        const uint64_t* counts
        size_t words
        size_t size

    int error_of_run(const Table&, int file) except +
    int error_of_runs(const Table&, size_t partitions, int file, vector[size_t]& stops) except +
    int error_of_merge(const vector[Table]&, int data, int offsets, int counts) except +


cdef Table table_of(const uint8_t[::1] data, const int64_t[::1] offsets, const uint64_t[::1] counts) except *:
    cdef Table table
    if offsets.shape[0] != counts.shape[0] + 1:
        raise ValueError(f"{counts.shape[0]} counts need {counts.shape[0] + 1} offsets, not {offsets.shape[0]}")
    table.data = &data[0] if data.shape[0] else NULL
    table.size = data.shape[0]
    table.offsets = &offsets[0]
    table.counts = &counts[0] if counts.shape[0] else NULL
    table.words = counts.shape[0]
    return table


cdef check(int error):
    if error:
        raise OSError(error, os.strerror(error))


def write_run(data, offsets, counts, int file):
    """Write the words with their counts to `file`, in the order of their bytes."""
    cdef Table table = table_of(data, offsets, counts)
    cdef int error
    with nogil:
        error = error_of_run(table, file)
    check(error)


def write_runs(data, offsets, counts, size_t partitions, int file):
    """Write a run for each partition of the words to `file`; returns where each ends, a multiple of eight."""
    cdef Table table = table_of(data, offsets, counts)
    cdef vector[size_t] stops
    cdef int error
    if not partitions:
        raise ValueError("no partitions hold no words; say 1 or more")
    with nogil:
        error = error_of_runs(table, partitions, file, stops)
    check(error)
    return list(stops)


def merge(tables, int data, int offsets, int counts):
    """Write the sum of tables, (data, offsets, counts) each with its words in order, to three files.

    The tables are mapped from files, whose pages are given back as they have been read.
    """
    cdef vector[Table] given
    cdef int error
    held = [tuple(table) for table in tables]  # keeps the buffers while they are read
    for columns in held:
        given.push_back(table_of(columns[0], columns[1], columns[2]))
    with nogil:
        error = error_of_merge(given, data, offsets, counts)
    check(error)
