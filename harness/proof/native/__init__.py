"""The compiled replay: replay.hpp has its structures and its proof, harness/proof/prove.py calls
it.
"""
