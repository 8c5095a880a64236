"""Tokenizers and lists of merges as files, at work, and held against other engines.

In: merges with their special tokens and pattern, or a file of any known form; a text. Out: the folder that is saved,
the forms that other engines load, ids, where other engines give others, figures of what a tokenizer does with a text.
"""
