"""One measurement: a job goes to a fresh process under limits, and an answer comes back that two
witnesses confirm.

In: a job, its limits, a folder. Out: an answer with seconds, CPU, memory and counts of work; and
what is known of the machine it was taken on.
"""
