# cython: language_level=3, boundscheck=False, wraparound=False
"""The windowed update of fine_grained, compiled in the four steps of part 10 of the series; see variants/cython_*.py.

Tokens and positions are C integers while they are looked at; lists, dicts, sets and tuples are Python's throughout, so
most of what a line does is unchanged. That is why the gains are small, and the point of these stages. The index keeps
words, not occurrences, as in the series.
"""

import heapq

from variants.fine_grained import IndexedWords


class TypedIndexedWords(IndexedWords):
    """Step 1 (v8): typed loop variables."""

    def merge(self, pair, new_token, meter):
        cdef set live = set()
        return merge_pair(self, pair, new_token, meter, live, True), live


class UncopiedIndexedWords(IndexedWords):
    """Step 2 (v8_v2): the window is read in the word itself instead of being copied."""

    def merge(self, pair, new_token, meter):
        cdef set live = set()
        return merge_pair(self, pair, new_token, meter, live, False), live


class GrownIndexedWords(IndexedWords):
    """Step 3 (v8_v3): the pairs of the windows are not collected; the changes of the counts say which have grown."""

    def merge(self, pair, new_token, meter):
        return merge_pair(self, pair, new_token, meter, None, False), ()


def learn(state, vocabulary, Py_ssize_t num_merges, min_count, meter):
    """Step 4 (v8_v4): the whole loop, and the queue of pairs with it, which answers None when no pair is left."""
    cdef dict pair_counts = state.pair_counts, changes
    cdef list keys = vocabulary.keys, merges = vocabulary.merges
    cdef list entries = [entry(pair, pair_counts, keys) for pair in pair_counts]
    heapq.heapify(entries)
    meter.tally("heap_pushes", len(entries))
    meter.lap("init")
    while len(merges) < num_merges:
        pair = most_frequent_pair(entries, pair_counts, keys, meter)
        meter.lap("max")
        if pair is None or pair_counts[pair] < min_count:
            break
        changes = merge_pair(state, pair, vocabulary.add(pair), meter, None, False)
        pushes = 0
        for changed, change in changes.items():
            if change > 0:
                heapq.heappush(entries, entry(changed, pair_counts, keys))
                pushes += 1
        meter.tally("heap_pushes", pushes)
        meter.lap("update")


cdef tuple entry(tuple pair, dict pair_counts, list keys):
    return -pair_counts[pair], keys[pair[0]], keys[pair[1]], pair


cdef most_frequent_pair(list entries, dict pair_counts, list keys, meter):
    """Take entries from the top until one is true; a stale one goes back with its true count, if it has any."""
    cdef Py_ssize_t pops = 0, returned = 0
    found = None
    while entries and found is None:
        claimed, _, _, pair = heapq.heappop(entries)
        pops += 1
        count = pair_counts.get(pair, 0)
        if -claimed == count:
            found = pair
        elif count:
            heapq.heappush(entries, entry(pair, pair_counts, keys))
            returned += 1
    meter.tally("heap_pops", pops)
    meter.tally("stale_pops", pops - (found is not None))
    meter.tally("heap_pushes", returned)
    return found


cdef dict merge_pair(state, pair, new_token, meter, set live, bint copies):
    """Merge `pair` in every word that holds it; returns the changes of the counts, already applied.

    The pairs that now stand in the windows are added to `live`, unless that is None.
    """
    cdef dict changes = {}
    cdef list word, old, new, gone
    cdef Py_ssize_t start, stop, shift, position
    cdef long visited = 0, updates = 0
    cdef long long left = pair[0], right = pair[1]
    cdef dict pair_counts = state.pair_counts, pair_to_words = state.pair_to_words
    cdef list words = state.words, weights = state.weights
    affected = pair_to_words.pop(pair)
    for number in affected:
        word, weight = words[number], weights[number]
        find_window(word, left, right, &start, &stop)
        visited += len(word) + (stop - start)
        old, shift = (word[start:stop], start) if copies else (word, 0)
        gone = []
        for position in range(start - shift, stop - shift - 1):
            old_pair = (old[position], old[position + 1])
            gone.append(old_pair)
            changes[old_pair] = changes.get(old_pair, 0) - weight
        new = rewritten(old, start - shift, stop - shift, left, right, new_token)
        word[start:stop] = new
        unindex(pair_to_words, gone, word, number)
        for position in range(len(new) - 1):
            new_pair = (new[position], new[position + 1])
            changes[new_pair] = changes.get(new_pair, 0) + weight
            if live is not None:
                live.add(new_pair)
            pair_to_words.setdefault(new_pair, {})[number] = 1
        updates += (stop - start) + len(new) - 2
    for changed, change in changes.items():
        count = pair_counts.get(changed, 0) + change
        if count:
            pair_counts[changed] = count
        else:
            pair_counts.pop(changed, None)
            pair_to_words.pop(changed, None)
    meter.tally("words_rewritten", len(affected))
    meter.tally("positions_visited", visited)
    meter.tally("pair_updates", updates)
    return changes


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
