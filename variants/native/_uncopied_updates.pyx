# cython: language_level=3, boundscheck=False, wraparound=False
"""cython_no_copy: against cython_fine_grained, the window is read where it stands in the word instead of being copied.

Part 10 of the series, its second step (v8_v2).
"""

from variants.fine_grained import IndexedWords
from variants.native._windows cimport apply, find_window, rewritten, tell, unindex


class UncopiedIndexedWords(IndexedWords):
    """IndexedWords whose merge runs compiled and copies no window."""

    def merge(self, pair, new_token, meter):
        cdef set standing = set()
        return merge_pair(self, pair, new_token, meter, standing), standing


cdef dict merge_pair(state, pair, new_token, meter, set standing):
    """Merge `pair` in every word that holds it; returns the changes of the counts, already applied.

    The pairs that now stand in the windows are added to `standing`, unless that is None: the stages behind this one do
    without.
    """
    cdef dict changes = {}
    cdef list word, new, gone
    cdef Py_ssize_t start, stop, position
    cdef long visited = 0, updates = 0
    cdef long long left = pair[0], right = pair[1]
    cdef dict pair_counts = state.pair_counts, pair_to_words = state.pair_to_words
    cdef list words = state.words, weights = state.weights
    affected = pair_to_words.pop(pair)
    for number in affected:
        word, weight = words[number], weights[number]
        find_window(word, left, right, &start, &stop)
        visited += len(word) + (stop - start)
        gone = []
        for position in range(start, stop - 1):
            old_pair = (word[position], word[position + 1])
            gone.append(old_pair)
            changes[old_pair] = changes.get(old_pair, 0) - weight
        new = rewritten(word, start, stop, left, right, new_token)
        word[start:stop] = new
        unindex(pair_to_words, gone, word, number)
        for position in range(len(new) - 1):
            new_pair = (new[position], new[position + 1])
            changes[new_pair] = changes.get(new_pair, 0) + weight
            if standing is not None:
                standing.add(new_pair)
            pair_to_words.setdefault(new_pair, {})[number] = 1
        updates += (stop - start) + len(new) - 2
    apply(changes, pair_counts, pair_to_words)
    tell(meter, len(affected), visited, updates)
    return changes
