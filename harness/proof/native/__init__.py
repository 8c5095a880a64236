"""The compiled part of proof: replay.hpp tells what it does, harness/proof/compiled_replay.py is the way to it."""
