"""Words counted where the text is: in parts, by workers of a cluster, from files that need not be on this machine.

A text is divided into parts that can be counted by themselves (dividing.py). Counting one is a function that leaves its
words as a file of sorted shards, made once and found again (tasks.py, shards.py); reducing merges them, partition by
partition, into one table of words. An engine does no more than call these functions somewhere (engine.py). counted.py
goes the whole way from what data.path names to the table.
"""
