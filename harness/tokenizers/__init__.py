"""Tokenizers and lists of merges as files, at work, and compared with other engines.

In: merges with their special tokens and pattern, or a file of any known form; a text. Out: the
folder that is saved, the forms that other engines load, ids, where an engine gives different ones,
figures of a tokenizer on a text.
"""
