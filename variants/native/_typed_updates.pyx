# cython: language_level=3, boundscheck=False, wraparound=False
"""cython_fine_grained: the windowed update of fine_grained with typed loop variables; the containers stay Python's.

Part 10 of the series, its first step (v8). Positions and tokens become C integers while they are looked at, but every
list, dict, set and tuple is still an object, so most of what a line does is unchanged. That is why the gain is small,
and the point of this stage.
"""

from variants.fine_grained import IndexedWords
from variants.native._windows cimport apply, find_window, rewritten, tell, unindex


class TypedIndexedWords(IndexedWords):
    """IndexedWords whose merge runs compiled. The index keeps words, not occurrences, as in the series."""

    def merge(self, pair, new_token, meter):
        cdef dict changes = {}
        cdef set standing = set()
        cdef list word, old, new, gone
        cdef Py_ssize_t start, stop, position
        cdef long visited = 0, updates = 0
        cdef long long left = pair[0], right = pair[1]
        cdef dict pair_counts = self.pair_counts, pair_to_words = self.pair_to_words
        affected = pair_to_words.pop(pair)
        for number in affected:
            word, weight = self.words[number], self.weights[number]
            visited += len(word)
            find_window(word, left, right, &start, &stop)
            old = word[start:stop]
            gone = []
            for position in range(len(old) - 1):
                old_pair = (old[position], old[position + 1])
                gone.append(old_pair)
                changes[old_pair] = changes.get(old_pair, 0) - weight
            new = word[start:stop] = rewritten(old, 0, len(old), left, right, new_token)
            unindex(pair_to_words, gone, word, number)
            for position in range(len(new) - 1):
                new_pair = (new[position], new[position + 1])
                changes[new_pair] = changes.get(new_pair, 0) + weight
                standing.add(new_pair)
                pair_to_words.setdefault(new_pair, {})[number] = 1
            visited += len(old)
            updates += len(old) + len(new) - 2
        apply(changes, pair_counts, pair_to_words)
        tell(meter, len(affected), visited, updates)
        return changes, standing
