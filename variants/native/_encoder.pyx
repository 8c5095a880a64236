# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False
"""The encoder's door to Python: texts in, ids out as lists or as buffers, the GIL released for long texts."""

from cpython.buffer cimport PyBUF_WRITABLE
from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcpy
from libcpp cimport bool as flag
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import os
import threading

from variants.native import _scanner


cdef extern from "encoder.hpp" namespace "native" nogil:
    cdef struct Merge:
        uint32_t left
        uint32_t right

    cdef cppclass Memory:
        void* start

cdef extern from "encoder.hpp" namespace "encoder" nogil:
    cdef cppclass Settings:
        vector[Merge] merges
        vector[uint32_t] ids
        vector[string] whole_words
        vector[uint32_t] whole_ids
        vector[string] specials
        vector[uint32_t] special_ids
        string pattern, numbers, pages, seed
        int path

    cdef struct Text:
        const unsigned char* start
        size_t length

    cdef cppclass Encoding "encoder::Encoder":
        void encode(const vector[Text]& texts, size_t threads) except +
        size_t parts()
        size_t size(size_t part)
        const vector[size_t]& ends(size_t part)
        const void* data(size_t part)
        Memory release(size_t part)
        size_t last_cut(const unsigned char* text, size_t length)

    unique_ptr[Encoding] encoder_of(const Settings& settings, flag narrow) except +

cdef extern from *:
    int PyUnicode_IS_COMPACT_ASCII(object text)

cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()

cdef size_t SHORT = 1 << 14   # bytes; for less the GIL is not worth releasing
cdef uint32_t MOST_NUMBERS = 1 << 21


cdef class Ids:
    """Ids in the encoder's memory as a read-only buffer, freed when nobody looks at it any more."""

    cdef Memory memory
    cdef Py_ssize_t length, itemsize

    def __len__(self):
        return self.length

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("ids are read-only")
        buffer.obj = self
        buffer.buf = self.memory.start
        buffer.len = self.length * self.itemsize
        buffer.itemsize = self.itemsize
        buffer.format = b"H" if self.itemsize == 2 else b"I"
        buffer.ndim = 1
        buffer.readonly = 1
        buffer.shape = &self.length
        buffer.strides = &self.itemsize
        buffer.suboffsets = NULL
        buffer.internal = NULL


cdef class Encoder:
    """A tokenizer's encoder; see variants/encoding.py, which checks what it is made of."""

    cdef unique_ptr[Encoding] encoding
    cdef vector[Text] texts     # of the call
    cdef list numbers           # ids as Python numbers, so that a list of them is made by pointing at these
    cdef object lock            # the tables belong to one call at a time
    cdef readonly Py_ssize_t itemsize

    def __init__(self, lefts, rights, ids, whole, specials, bytes pattern, tables, str path, uint32_t last_id):
        cdef Settings settings
        cdef uint32_t left, right
        for left, right in zip(lefts, rights):
            settings.merges.push_back(Merge(left, right))
        settings.ids = ids
        for word, number in whole.items():
            settings.whole_words.push_back(word)
            settings.whole_ids.push_back(number)
        for token, number in specials.items():
            settings.specials.push_back(token)
            settings.special_ids.push_back(number)
        settings.pattern, settings.path = pattern, <int> _scanner.PATHS[path]
        settings.numbers, settings.pages = tables
        settings.seed = os.urandom(32)
        self.itemsize = 2 if last_id < 1 << 16 else 4
        self.encoding = encoder_of(settings, last_id < 1 << 16)
        self.numbers = list(range(min(<long> last_id + 1, <long> MOST_NUMBERS)))   # a file may have a single huge id
        self.lock = threading.Lock()

    def encode(self, text):
        """The ids of a text, or of any bytes, as a list. Raises UnicodeEncodeError for lone surrogates."""
        cdef object kept
        with self.lock:
            kept = self.encode_one(text)
            return self.listed()

    cdef object encode_one(self, text):
        """Encode a text into the only part. Returns what must live until then."""
        cdef Py_ssize_t length
        cdef Text one
        if isinstance(text, str) and PyUnicode_IS_COMPACT_ASCII(text):
            one.start = <const unsigned char*> PyUnicode_AsUTF8AndSize(text, &length)
            one.length = length
        else:
            text = as_bytes(text)
            one.start, one.length = text, len(text)
        self.texts.assign(1, one)
        self.run(one.length, 1)
        return text

    def encode_batch(self, list texts, size_t threads):
        """The ids of texts as buffers, one for each of up to so many threads, and where each text ends in them all.

        One text is divided between the threads, and then only the end of all counts.
        """
        cdef list contents = [as_bytes(text) for text in texts]
        cdef list parts = [], ends = []
        cdef size_t total = 0, before = 0, index
        cdef const vector[size_t]* ends_of_part
        cdef Py_ssize_t part
        cdef Ids ids
        cdef bytes content
        with self.lock:
            self.texts.clear()
            for content in contents:
                self.texts.push_back(Text(content, len(content)))
                total += len(content)
            self.run(total, threads)
            for part in range(<Py_ssize_t> self.encoding.get().parts()):
                ends_of_part = &self.encoding.get().ends(part)
                for index in range(ends_of_part.size()):
                    ends.append(before + ends_of_part.at(index))
                ids = Ids.__new__(Ids)
                ids.length, ids.itemsize = self.encoding.get().size(part), self.itemsize
                ids.memory = self.encoding.get().release(part)
                before += ids.length
                parts.append(ids)
        return parts, ends if len(texts) != 1 else [before]

    def last_cut(self, const unsigned char[::1] text):
        """The last place to cut a text at whatever follows it; 0 if there is none."""
        return self.encoding.get().last_cut(&text[0], text.shape[0]) if text.shape[0] else 0

    cdef int run(self, size_t bytes_of_all, size_t threads) except -1:
        if bytes_of_all < SHORT:
            self.encoding.get().encode(self.texts, 1)
            return 0
        with nogil:
            self.encoding.get().encode(self.texts, threads)
            wait_if_the_interpreter_ends()
        return 0

    cdef list listed(self):
        cdef Py_ssize_t number = self.encoding.get().size(0), index
        cdef const uint16_t* narrow = <const uint16_t*> self.encoding.get().data(0)
        cdef const uint32_t* wide = <const uint32_t*> self.encoding.get().data(0)
        cdef list ids = PyList_New(number)
        cdef uint32_t value
        cdef object id
        for index in range(number):
            value = narrow[index] if self.itemsize == 2 else wide[index]
            id = <object> PyList_GET_ITEM(self.numbers, value) if value < MOST_NUMBERS else value
            Py_INCREF(id)
            PyList_SET_ITEM(ids, index, id)
        return ids


cdef bytes as_bytes(text):
    """A text as UTF-8, in which lone surrogates that mean bytes become these; bytes as they are."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode(errors="surrogateescape")
    if isinstance(text, (bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"a text is str or bytes, not {type(text).__name__}")
