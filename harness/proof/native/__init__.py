"""The compiled replay: replay.hpp has its structures and its proof, harness/proof/compiled_replay.py calls
it.
"""
