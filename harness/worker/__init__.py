"""The measured process: it reads one job, calls one counter or trainer, and writes one answer.

In: a job as JSON on standard input, words as three mapped columns. Out: an answer as JSON, merges as bytes, progress on
a pipe. Standard library only, and Python 3.9's, so that it starts small and runs under any interpreter.
"""
