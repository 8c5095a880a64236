# cython: language_level=3, boundscheck=False, wraparound=False
"""The windowed update of fine_grained with typed loop variables; the containers stay Python's.

Part 10 of the series, its first step. Positions and tokens become C integers while they are looked at, but every list,
dict, set and tuple is still an object, so most of what a line does is unchanged. That is why the gain is small, and the
point of this stage.
"""

from variants.fine_grained import IndexedWords


class TypedIndexedWords(IndexedWords):
    """IndexedWords whose merge runs compiled. The index keeps words, not occurrences, as in the series."""

    def merge(self, pair, new_token, meter):
        cdef dict changes = {}
        cdef set standing = set()
        cdef list word, new
        cdef Py_ssize_t first, last, start, stop, position, length
        cdef long visited = 0, updates = 0
        cdef long long left = pair[0], right = pair[1]
        cdef dict pair_counts = self.pair_counts, pair_to_words = self.pair_to_words, holders
        affected = pair_to_words.pop(pair)
        for number in affected:
            word = self.words[number]
            weight = self.weights[number]
            length = len(word)
            first = 0
            while word[first] != left or word[first + 1] != right:
                first += 1
            last = length - 2
            while word[last] != left or word[last + 1] != right:
                last -= 1
            start = max(first - 1, 0)
            stop = min(last + 3, length)
            gone = []
            for position in range(start, stop - 1):
                old_pair = (word[position], word[position + 1])
                gone.append(old_pair)
                changes[old_pair] = changes.get(old_pair, 0) - weight
            new = []
            position = start
            while position < stop:
                if position + 1 < stop and word[position] == left and word[position + 1] == right:
                    new.append(new_token)
                    position += 2
                else:
                    new.append(word[position])
                    position += 1
            word[start:stop] = new
            remaining = set(zip(word, word[1:]))
            for old_pair in gone:
                holders = pair_to_words.get(old_pair)
                if holders is not None and old_pair not in remaining:
                    holders.pop(number, None)
            for position in range(len(new) - 1):
                new_pair = (new[position], new[position + 1])
                changes[new_pair] = changes.get(new_pair, 0) + weight
                standing.add(new_pair)
                pair_to_words.setdefault(new_pair, {})[number] = 1
            visited += length + (stop - start)
            updates += (stop - start - 1) + (len(new) - 1)
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
        return changes, standing
