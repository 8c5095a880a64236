# cython: language_level=3
"""cython_loop: against cython_opt, the whole loop over merges is compiled, the queue of pairs with it.

Part 10 of the series, its last step (v8_v4), which found nothing to gain: what a merge costs is the objects it handles,
and those are the same whoever calls. The published loop lost a branch on the way and failed where no pair was left;
here the queue answers None.
"""

import heapq

from variants.native._uncopied_updates cimport merge_pair


def learn(state, vocabulary, Py_ssize_t num_merges, min_count, meter):
    """Learn merges into `vocabulary`, whose keys sort for a min-heap, from `state`, the indexed words."""
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
        changes = merge_pair(state, pair, vocabulary.add(pair), meter, None)
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
