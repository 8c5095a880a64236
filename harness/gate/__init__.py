"""The gate: whether a change makes a trainer wrong, slower, larger, or do more work, in three
tiers.

The command has observe.py measure the two sides that base.py makes, and writes evidence; `judge` is
a function of the evidence alone, so a stored run gives its verdict again.

In: the code of a change and of its base. Out: observations on disk, a verdict, an exit code.
"""
