"""The gate: whether a change makes a trainer wrong, slower, larger, or do more work, in three tiers.

`observe` measures the two sides that base.py makes, run by run with sampler.py, and writes evidence; `judge` is a
function of the evidence alone, so a stored run gives its verdict again.

In: the code of a change and of its base. Out: observations on disk, a verdict, an exit code.
"""
