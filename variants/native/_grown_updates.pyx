# cython: language_level=3
"""cython_opt: against cython_no_copy, the pairs that stand in the windows are no longer collected.

Part 10 of the series, its third step (v8_v3, which removes `new_pairs`). A pair whose count grew in a merge is exactly
one that the merge created, so the changes of the counts say already what the heap has to hear.
"""

from variants.fine_grained import IndexedWords
from variants.native._uncopied_updates cimport merge_pair


class GrownIndexedWords(IndexedWords):
    """IndexedWords whose merge runs compiled, copies no window and collects no pairs."""

    def merge(self, pair, new_token, meter):
        return merge_pair(self, pair, new_token, meter, None), ()
