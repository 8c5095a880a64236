# cython: language_level=3, boundscheck=False, wraparound=False
"""What the compiled updates of fine_grained share: the window of a word, its rewriting, the index and the counts.

Tokens and positions are C integers while they are looked at; lists, dicts, sets and tuples are Python's throughout.
"""


cdef inline void find_window(list word, long long left, long long right, Py_ssize_t* start, Py_ssize_t* stop) except *:
    """From one token before the first occurrence of (left, right) to one after the last, in a word that holds it."""
    cdef Py_ssize_t first = 0, last = len(word) - 2
    while word[first] != left or word[first + 1] != right:
        first += 1
    while word[last] != left or word[last + 1] != right:
        last -= 1
    start[0] = max(first - 1, 0)
    stop[0] = min(last + 3, len(word))


cdef inline list rewritten(list word, Py_ssize_t start, Py_ssize_t stop, long long left, long long right, new_token):
    """The tokens from start to stop with (left, right) replaced left to right, without overlap."""
    cdef list new = []
    cdef Py_ssize_t position = start
    while position < stop:
        if position + 1 < stop and word[position] == left and word[position + 1] == right:
            new.append(new_token)
            position += 2
        else:
            new.append(word[position])
            position += 1
    return new


cdef inline void unindex(dict pair_to_words, list gone, list word, number) except *:
    """Take a word out of the index of the pairs that have left its window, unless it holds them elsewhere."""
    cdef dict holders
    cdef set remaining = set(zip(word, word[1:]))
    for pair in gone:
        holders = pair_to_words.get(pair)
        if holders is not None and pair not in remaining:
            holders.pop(number, None)


cdef inline void apply(dict changes, dict pair_counts, dict pair_to_words) except *:
    """Change the counts by what one merge changed them; a pair that is nowhere left is forgotten."""
    for pair, change in changes.items():
        count = pair_counts.get(pair, 0) + change
        if count:
            pair_counts[pair] = count
        else:
            pair_counts.pop(pair, None)
            pair_to_words.pop(pair, None)


cdef inline void tell(meter, Py_ssize_t rewritten_words, long visited, long updates) except *:
    """The counts of work of one merge, under the names that every stage uses."""
    meter.tally("words_rewritten", rewritten_words)
    meter.tally("positions_visited", visited)
    meter.tally("pair_updates", updates)
