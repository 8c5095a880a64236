# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False
"""Calls the encoder and the decoder from Python: texts in, ids out as lists or as buffers, and back, the GIL released for
long texts.
"""

from cython cimport pymutex
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.number cimport PyNumber_Index
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as flag
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import os
import sys

from variants.native import _scanner


cdef extern from "encoder.hpp" namespace "native" nogil:
    cdef struct Merge:
        uint32_t left
        uint32_t right

    cdef cppclass Memory:
        void* start

    cdef cppclass Training:
        pass

    ctypedef flag (*Report)(void* context, const Training& so_far)

cdef extern from "encoder.hpp" namespace "encoder" nogil:
    cdef struct Sizes:
        size_t block, part, short_words, long_words, arena
        unsigned short_bits, long_bits

    cdef cppclass Settings:
        vector[Merge] merges
        vector[uint32_t] ids
        vector[string] whole_words
        vector[uint32_t] whole_ids
        vector[string] specials
        vector[uint32_t] special_ids
        string pattern, numbers, pages, seed
        int path
        Sizes sizes

    cdef struct Text:
        const void* start
        size_t length
        unsigned width
        flag valid

    cdef cppclass Encoding "encoder::Encoder":
        flag encode(const vector[Text]& texts, size_t threads, Report report, void* context) except +
        size_t size()
        const vector[size_t]& ends()
        const void* data()
        Memory release() except +
        size_t last_cut(const unsigned char* text, size_t length) except +

    unique_ptr[Encoding] encoder_of(const Settings& settings, flag narrow) except +

cdef extern from "encoder_decoding.hpp" namespace "encoder" nogil:
    cdef struct Measured "encoder::Decoder::Measured":
        size_t bytes, place
        flag known

    cdef cppclass Decoding "encoder::Decoder":
        void add(uint64_t id, const string& token) except +
        void finish() except +
        Measured measure(const void* ids, size_t number, size_t width, flag with_sign)
        void write(const void* ids, size_t number, size_t width, flag with_sign, char* to, size_t bytes)

cdef extern from *:
    int PyUnicode_IS_ASCII(object text)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef extern from "interpreter.hpp" namespace "native" nogil:
    void wait_if_the_interpreter_ends()
    flag in_python(...)   # a function with the GIL, and its arguments

cdef size_t SHORT = 1 << 14   # bytes, encoded within 2 ms; to give the GIL up may cost the 5 ms that other threads keep it
cdef uint32_t MOST_NUMBERS = 1 << 21
cdef dict INTEGERS = {code.encode(): code.islower() for code in "bhilqBHILQ"}   # whether they have a sign


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
    cdef pymutex lock           # the tables belong to one call at a time
    cdef object raised          # by a signal, during the call
    cdef readonly Py_ssize_t itemsize

    def __init__(self, lefts, rights, ids, whole, specials, bytes pattern, tables, str path, uint32_t last_id,
                 sizes=()):
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
        settings.sizes = {**settings.sizes, **dict(sizes)}
        self.itemsize = 2 if last_id < 1 << 16 else 4
        self.encoding = encoder_of(settings, last_id < 1 << 16)
        self.numbers = list(range(min(<long> last_id + 1, <long> MOST_NUMBERS)))   # a file may have a single huge id

    def encode(self, text):
        """The ids of a text, or of any bytes, as a list. Raises UnicodeEncodeError for lone surrogates."""
        with self.lock:
            self.run([text], 1)
            return self.listed()

    def encode_array(self, text, size_t threads):
        """The same as a buffer; the text is divided between the threads."""
        with self.lock:
            self.run([text], threads)
            return self.released()

    def encode_batch(self, list texts, size_t threads):
        """The ids of texts in one buffer, and where each of them ends in it. Raises UnicodeEncodeError for lone surrogates."""
        cdef const vector[size_t]* ends
        if len(texts) == 1:
            ids = self.encode_array(texts[0], threads)
            return ids, [len(ids)]
        with self.lock:
            self.run(texts, threads)
            ends = &self.encoding.get().ends()
            return self.released(), [ends.at(index) for index in range(ends.size())]

    def last_cut(self, const unsigned char[::1] text):
        """The last place to cut a text at whatever follows it; 0 if there is none."""
        return self.encoding.get().last_cut(&text[0], text.shape[0]) if text.shape[0] else 0

    cdef int run(self, list texts, size_t threads) except -1:
        cdef list contents = []   # what must live until the end
        cdef size_t length = 0
        cdef Text one
        cdef flag finished = True
        self.texts.clear()
        for text in texts:
            if isinstance(text, str):
                one = characters_of(text)
            else:
                text = as_bytes(text)
                one.start, one.length, one.width = <const char*> <bytes> text, len(<bytes> text), 0
                one.valid = False
            contents.append(text)
            self.texts.push_back(one)
            length += one.length
        try:
            if length < SHORT:
                self.encoding.get().encode(self.texts, 1, NULL, NULL)
            else:
                with nogil:
                    finished = self.encoding.get().encode(self.texts, threads, go_on, <void*> self)
                    wait_if_the_interpreter_ends()
        except ValueError:
            for text in texts:
                if isinstance(text, str):
                    text.encode(errors="surrogateescape")   # raises what Python says of its surrogates
            raise
        if not finished:
            raise self.raised
        return 0

    cdef Ids released(self):
        cdef Ids ids = Ids.__new__(Ids)
        ids.length, ids.itemsize = self.encoding.get().size(), self.itemsize
        ids.memory = self.encoding.get().release()
        return ids

    cdef list listed(self):
        cdef Py_ssize_t number = self.encoding.get().size(), index
        cdef const uint16_t* narrow = <const uint16_t*> self.encoding.get().data()
        cdef const uint32_t* wide = <const uint32_t*> self.encoding.get().data()
        cdef list ids = PyList_New(number)
        cdef uint32_t value
        cdef object id
        for index in range(number):
            value = narrow[index] if self.itemsize == 2 else wide[index]
            id = <object> PyList_GET_ITEM(self.numbers, value) if value < MOST_NUMBERS else value
            Py_INCREF(id)
            PyList_SET_ITEM(ids, index, id)
        return ids


cdef flag go_on(void* encoder, const Training& so_far) noexcept nogil:
    return in_python(check_signals, encoder)


cdef flag check_signals(void* encoder) noexcept with gil:
    try:
        PyErr_CheckSignals()
        return True
    except BaseException as error:
        (<Encoder> encoder).raised = error
        return False


cdef Text characters_of(object text):
    """A string as it lies in memory; ASCII is bytes already."""
    cdef Text characters
    characters.start, characters.length = PyUnicode_DATA(text), <size_t> PyUnicode_GET_LENGTH(text)
    characters.valid = True
    characters.width = 0 if PyUnicode_IS_ASCII(text) else <unsigned> PyUnicode_KIND(text)
    return characters


cdef bytes as_bytes(content):
    """Bytes as they are, and what is like them as bytes."""
    if type(content) is bytes:
        return content
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"a text is str or bytes, not {type(content).__name__}")


cdef class Decoder:
    """A vocabulary's decoder: from ids, as a buffer of numbers or any iterable, to bytes."""

    cdef Decoding decoding

    def __init__(self, vocab):
        for number, token in vocab.items():
            self.decoding.add(number, token)
        self.decoding.finish()

    def decode(self, ids):
        """The bytes of some ids. Raises KeyError, with its place and the id, for one that is not in the vocabulary, and
        TypeError for what is no number.
        """
        cdef Py_buffer buffer
        cdef vector[int64_t] numbers
        if PyObject_CheckBuffer(ids):
            PyObject_GetBuffer(ids, &buffer, PyBUF_STRIDES | PyBUF_FORMAT)
            try:
                is_row = buffer.ndim == 1 and buffer.strides[0] == buffer.itemsize
                if is_row and <bytes> buffer.format in INTEGERS:
                    return self.decoded(buffer.buf, buffer.shape[0], buffer.itemsize, INTEGERS[buffer.format])
            finally:
                PyBuffer_Release(&buffer)
        try:
            for number in ids:
                numbers.push_back(number if type(number) is int else PyNumber_Index(number))   # a float is not an id
        except OverflowError:
            self.decoded(numbers.data(), numbers.size(), sizeof(int64_t), True)   # one before it may be unknown as well
            raise KeyError(numbers.size(), number) from None
        return self.decoded(numbers.data(), numbers.size(), sizeof(int64_t), True)

    cdef bytes decoded(self, const void* ids, size_t number, size_t width, flag with_sign):
        cdef Measured measured
        cdef bytes content
        cdef char* to
        with nogil:
            measured = self.decoding.measure(ids, number, width, with_sign)
        if not measured.known:
            unknown = (<const char*> ids)[measured.place * width:(measured.place + 1) * width]
            raise KeyError(measured.place, int.from_bytes(unknown, sys.byteorder, signed=with_sign))
        content = PyBytes_FromStringAndSize(NULL, measured.bytes)
        to = PyBytes_AS_STRING(content)
        with nogil:
            self.decoding.write(ids, number, width, with_sign, to, measured.bytes)
        return content
