"""The measured process: it reads one job, calls one counter or trainer, and writes one answer.

In: a job as JSON, words as three mapped columns. Out: an answer as JSON, merges as bytes, progress
on a socket. Standard library only, and Python 3.9's, so that it starts small and runs under any
interpreter.
"""

JOB_FOLDER = "BPE_HARNESS_JOB"
CHANNEL = "BPE_HARNESS_CHANNEL"
"""The variables that name the folder of the job and its answer, and the descriptor of a socket to
the harness.
"""
JOB, WORK, STOP, ANSWER = "job.json", "work.json", "stop", "answer.json"
"""Files in that folder: what a process needs before the import, the rest of its job, a request to
stop, the answer.
"""
STANDARD_LIBRARY_FIRST = (
    "import os, sys; LIBRARY = os.path.dirname(os.__file__); sys.path[:] = "
    "[LIBRARY, os.path.join(LIBRARY, 'lib-dynload'), *filter(None, sys.path)]; "
)
"""What a process runs first, so that no file of the current folder or of PYTHONPATH replaces a module
of the standard library.
"""
BEHIND_THE_STANDARD_LIBRARY = slice(2, 2)
"""Where `sys.path` of such a process takes further folders."""
