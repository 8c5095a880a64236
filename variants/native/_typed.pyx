# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""cython_typed: against cython_loop, nothing that a merge touches is a Python object any more, and the GIL is free.

What part 10 of the series names and leaves out. A pair is one 64-bit number, a word is a slice of one array of token
ids, the counts and the index are C++ containers keyed by that number, the heap is an array of structs. The algorithm is
still that of heap_opt: windows, an inverted index of words, a lazily corrected heap fed with the pairs that grew.

The index only ever grows: a word that no longer holds a pair is found out when the pair is merged, by looking. That
costs a look and spares the set of the word's other pairs that fine_grained makes for every window.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as flag
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

include "training.pxi"


cdef class Typed

# What the loop needs without the GIL is declared without `except +`, which would make every call reach for Python: what is
# thrown there, by an allocation that fails or a meter that says stop, is caught once, round the whole loop.
cdef extern from "<vector>" namespace "std" nogil:
    cdef cppclass values "std::vector"[T]:
        T& operator[](size_t)
        T& back()
        size_t size()
        bint empty()
        void push_back(const T&)
        void resize(size_t)
        void clear()
        void swap(values[T]&)

cdef extern from "<unordered_map>" namespace "std" nogil:
    cdef cppclass unordered_map[K, V]:
        V& operator[](const K&)
        size_t count(const K&)
        size_t erase(const K&)

cdef extern from "grid.hpp" namespace "grid" nogil:
    cdef cppclass Vocabulary:
        Vocabulary(TieBreak tie_break) except +
        uint32_t add(uint64_t pair)

    cdef struct Entry "grid::Best":
        uint64_t pair
        int64_t count   # what the pair's count was when the entry was made; it can only be less by now

    uint64_t packed "grid::key_of"(uint32_t left, uint32_t right)

cdef extern from * nogil:
    """
    #include <algorithm>

    template <class Function, class Argument> void run_until_stopped(Function function, Argument argument) {
        try {
            function(argument);
        } catch (const native::Stopped&) {
        }
    }
    inline void add_merge(native::Training& training, uint32_t left, uint32_t right) {
        training.merges.push_back({left, right});
    }
    using Entry = grid::Best;
    inline auto behind(const grid::Vocabulary& vocabulary) {
        return [&](const Entry& one, const Entry& other) {
            return one.count != other.count ? one.count < other.count : vocabulary.before(other.pair, one.pair);
        };
    }
    inline void push_entry(std::vector<Entry>& heap, int64_t count, uint64_t pair, const grid::Vocabulary& vocabulary) {
        heap.push_back({pair, count});
        std::push_heap(heap.begin(), heap.end(), behind(vocabulary));
    }
    inline Entry pop_entry(std::vector<Entry>& heap, const grid::Vocabulary& vocabulary) {
        std::pop_heap(heap.begin(), heap.end(), behind(vocabulary));
        const Entry top = heap.back();
        heap.pop_back();
        return top;
    }
    """
    void run_until_stopped(void (*function)(Typed) noexcept nogil, Typed typed) except +
    void add_merge(Training& training, uint32_t left, uint32_t right)
    void push_entry(values[Entry]& heap, int64_t count, uint64_t pair, const Vocabulary& vocabulary)
    Entry pop_entry(values[Entry]& heap, const Vocabulary& vocabulary)


cdef class Typed:
    """The state of one training; nothing in it is shared with another."""

    cdef const unsigned char[::1] data   # the columns of the word counts
    cdef const long long[::1] offsets
    cdef const unsigned long long[::1] counts
    cdef values[uint32_t] symbols        # every word's token ids, one after another; a word shrinks in its place
    cdef values[uint64_t] starts         # where each word begins in symbols
    cdef values[uint32_t] lengths        # how many of its tokens are left
    cdef values[int64_t] weights
    cdef unordered_map[uint64_t, int64_t] pair_counts
    cdef unordered_map[uint64_t, values[uint32_t]] pair_to_words
    cdef unordered_map[uint64_t, int64_t] changes
    cdef values[uint64_t] changed        # the pairs in `changes`, in the order they came
    cdef values[Entry] heap
    cdef unique_ptr[Vocabulary] vocabulary   # the bytes of every token, and which pair goes first at equal counts
    cdef uint64_t num_merges
    cdef int64_t min_count
    cdef Training training               # the merges so far, and the seconds
    cdef unique_ptr[Progress] progress
    cdef uint64_t pops, stale, pushes, rewritten, visited, updates

    def __init__(self, word_counts, num_merges, min_count, int tie_break):
        check_rules(tie_break, min_count, 1)
        self.data, self.offsets, self.counts = word_counts.data, word_counts.offsets, word_counts.counts
        columns_of(self.data, self.offsets, self.counts)
        self.vocabulary.reset(new Vocabulary(<TieBreak> tie_break))
        self.num_merges, self.min_count = num_merges, min_count
        if len(word_counts) >= 2**32 or len(self.data) >= 2**32:
            raise ValueError("it numbers words, and tokens in a word, with 32 bits; here there are more")

    def learn(self, meter):
        """Run to the end, or until the meter says stop; returns the merges."""
        cdef Published published = Published(meter, 0)
        meter.follow(published.merges)
        if not meter.progress(0):
            return published.merges
        self.progress.reset(new Progress(self.training, report, <void*> published))
        with nogil:
            run_until_stopped(run, self)
            wait_if_the_interpreter_ends()
        published.finish(self.training)
        meter.lap("convert")
        for name, number in (
            ("heap_pops", self.pops), ("stale_pops", self.stale), ("heap_pushes", self.pushes),
            ("words_rewritten", self.rewritten), ("positions_visited", self.visited), ("pair_updates", self.updates),
        ):
            meter.tally(name, number)
        return published.merges

    cdef void count_pairs(self) noexcept nogil:
        """The count and the words of every pair, and an entry in the heap for each."""
        cdef size_t word
        cdef uint64_t place, end
        for word in range(self.starts.size()):
            place = self.starts[word]
            end = place + self.lengths[word]
            self.visited += end - place
            self.change_pairs(word, place, end, self.weights[word])
            self.progress.get().advance(16 * (end - place), init)
        self.apply_changes()

    cdef void change_pairs(self, size_t word, uint64_t place, uint64_t end, int64_t weight) noexcept nogil:
        """Add `weight`, which may be negative, to every pair from place to end; index the word where pairs come."""
        cdef uint64_t pair
        cdef values[uint32_t]* holders
        while place + 1 < end:
            pair = packed(self.symbols[place], self.symbols[place + 1])
            if not self.changes.count(pair):
                self.changed.push_back(pair)
            self.changes[pair] += weight
            if weight > 0:
                holders = &self.pair_to_words[pair]
                if holders.empty() or holders.back() != word:
                    holders.push_back(<uint32_t> word)
            self.updates += 1
            place += 1

    cdef void apply_changes(self) noexcept nogil:
        """Change the counts by what was summed, and push the pairs that grew: those that are new."""
        cdef size_t number
        cdef uint64_t pair
        cdef int64_t change, count
        for number in range(self.changed.size()):
            pair = self.changed[number]
            change = self.changes[pair]
            if change:
                count = self.pair_counts[pair] + change
                self.pair_counts[pair] = count
                if change > 0:
                    self.push(count, pair)
                elif not count:
                    self.pair_counts.erase(pair)
                    self.pair_to_words.erase(pair)
            self.changes.erase(pair)
        self.changed.clear()

    cdef void merge(self, uint64_t pair) noexcept nogil:
        """Replace a pair by a new token in every word that holds it."""
        cdef uint32_t left = <uint32_t> (pair >> 32), right = <uint32_t> pair
        cdef uint32_t new_token = self.vocabulary.get().add(pair)
        cdef values[uint32_t] holders
        cdef size_t number
        add_merge(self.training, left, right)
        holders.swap(self.pair_to_words[pair])
        for number in range(holders.size()):
            self.merge_in_word(holders[number], left, right, new_token)
        self.apply_changes()

    cdef void merge_in_word(self, size_t word, uint32_t left, uint32_t right, uint32_t new_token) noexcept nogil:
        """The windowed update of fine_grained; nothing happens where the pair no longer occurs."""
        cdef uint64_t begin = self.starts[word], end = begin + self.lengths[word]
        cdef uint64_t first = begin, last, start, stop, read, write
        self.visited += end - begin
        while first + 1 < end and (self.symbols[first] != left or self.symbols[first + 1] != right):
            first += 1
        if first + 1 >= end:
            return
        last = end - 2
        while self.symbols[last] != left or self.symbols[last + 1] != right:
            last -= 1
        start = first - 1 if first > begin else first
        stop = last + 3 if last + 3 < end else end
        self.visited += stop - start
        self.change_pairs(word, start, stop, -self.weights[word])
        read = write = start
        while read < stop:
            if read + 1 < stop and self.symbols[read] == left and self.symbols[read + 1] == right:
                self.symbols[write] = new_token
                read += 2
            else:
                self.symbols[write] = self.symbols[read]
                read += 1
            write += 1
        self.change_pairs(word, start, write, self.weights[word])
        while read < end:
            self.symbols[write] = self.symbols[read]
            read += 1
            write += 1
        self.lengths[word] = <uint32_t> (write - begin)
        self.rewritten += 1

    cdef void push(self, int64_t count, uint64_t pair) noexcept nogil:
        push_entry(self.heap, count, pair, self.vocabulary.get()[0])
        self.pushes += 1

    cdef bint find_most_frequent(self, Entry* found) noexcept nogil:
        """Take entries from the top until one is true; a stale one goes back with its true count, if it has any."""
        cdef int64_t count
        while not self.heap.empty():
            found[0] = pop_entry(self.heap, self.vocabulary.get()[0])
            self.pops += 1
            count = self.pair_counts[found.pair] if self.pair_counts.count(found.pair) else 0
            if count == found.count:
                return True
            self.stale += 1
            if count:
                self.push(count, found.pair)
        return False


cdef void lay_out(Typed typed) noexcept nogil:
    """The words as arrays of token ids."""
    cdef size_t word, place
    typed.symbols.resize(typed.data.shape[0])
    for place in range(<size_t> typed.data.shape[0]):
        typed.symbols[place] = typed.data[place]
    for word in range(<size_t> typed.counts.shape[0]):
        typed.starts.push_back(typed.offsets[word])
        typed.lengths.push_back(<uint32_t> (typed.offsets[word + 1] - typed.offsets[word]))
        typed.weights.push_back(<int64_t> typed.counts[word])


cdef void run(Typed typed) noexcept nogil:
    """The loop. The GIL is free, and taken only to report."""
    cdef Entry found
    cdef Progress* progress = typed.progress.get()
    lay_out(typed)
    progress.lap(convert)
    typed.count_pairs()
    progress.lap(init)
    while typed.training.merges.size() < typed.num_merges:
        if not typed.find_most_frequent(&found) or found.count < typed.min_count:
            progress.lap(max)
            break
        progress.lap(max)
        typed.merge(found.pair)
        progress.lap(update)
        progress.advance(1024, update)
