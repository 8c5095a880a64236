"""What is right: worked examples, checks of any trainer or counter, and the true counts behind
every merge.

In: a trainer, a counter, or a list of merges with the words it was made of. Out: the checks that
failed, with a small input that shows it; for merges, which of them were the most frequent pair
of their moment.
"""

IDENTICAL, UP_TO_TIES, BY_DESIGN, WRONG, UNPROVED = (
    "identical", "identical_up_to_ties", "different_by_design", "wrong", "unproved"
)  # fmt: skip
PROVED = (IDENTICAL, UP_TO_TIES)
