"""The gate: whether a change makes a trainer wrong, busier, slower or larger, in three tiers, the cheapest first.

Identity judges merges by the replay, work holds counts against a committed snapshot and instructions against
the base, time holds interleaved samples against the base. Measuring (deterministic.py, work.py, timing.py) yields
observations, a line each (evidence.py); the verdict (judging.py) is a function of those lines alone, so that it can be
had again.

In: the code of a change and of its base. Out: observations on disk, a verdict, an exit code.
"""
