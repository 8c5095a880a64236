"""What --help prints: a short page, and with `--help all` every name and setting."""

from __future__ import annotations

import textwrap

from harness.common import registry
from harness.common.registry import OUTSIDE

MOST_OF_A_FAMILY = 12
"""So many variants of one idea are named one by one; more are a grid of presets, named by what they have in common."""

SHORT = """\
bpe-harness [NAME=VALUE ...]        the same as python -m harness

Trains byte-level BPE tokenizers, times the training and proves the merges.

  python -m harness variants=naive,heap data.path=book.txt
  python -m harness variant=flat vocab_size=10k data.path=book.txt save=my_tokenizer
  python -m harness -m variant=heap,flat threads=1,2     every combination

  variants      naive, heap, flat, ..., all, or package.module:function of yours
  data          stdlib (the default), owt, ...; data.path=FILE, FOLDER or PATTERN
  vocab_size    of the tokenizer, special tokens included
  repeat        blocks; six or more give intervals
  limits.wall   seconds for each process; what takes longer is estimated

Then: bpe-harness table, plot, report, board, replay, conformance, tokenizer, gate,
corpora, doctor, records, new_variant; each has --help.
python -m harness --help all prints every name and setting."""

TEXT = """\
python -m harness [-m] [NAME=VALUE ...]

  python -m harness                                    heap on the standard library
  python -m harness variant=naive data.path=book.txt   one variant on a file of yours
  python -m harness -m variant=naive,heap threads=1,2  a sweep: every combination
  python -m harness experiment=ladder                  a named sweep
  python -m harness variant=heap save=my_tokenizer     keep the tokenizer
  python -m harness variant._target_=mine:train        a trainer of your own

  variant      {variants}
  variants     a list, all, or a tag: {tags}
  data         {data};
               data.path=FILE, [A,B], FOLDER, 'PATTERN' or - (standard input), .gz .zst
               .xz .bz2 .parquet .jsonl (data.column=text), joined by data.separator=T;
               data.bytes=64MB, data.skip=1GB, data.documents=100
  counting     {counting}
  pattern      {pattern}; pattern=FILE.json,
               pattern.regex='...', pattern.partial=true
  measure      {measure}
  experiment   {experiment}
  vocab_size=N  special_tokens=[A,B] or []  threads=N|all  repeat=N  seed=N  min_count=N
  extend=FOLDER|FILE  inherited=kept|met  seeds=FILE|[A,B]  protected=FILE|[A,B]
  veto=whole_characters|superbpe|bytes:N|characters:N|mine:veto, or [A,B]
  tie_break=greatest_bytes|smallest_bytes|huggingface|raw_bytes|own  interpreter=pypy3
  variant.params.NAME=VALUE  limits.wall=60  limits.memory=2GB  errors=strict|replace
  results=FOLDER  save=FOLDER  overwrite=true  affinity=[0,1]  tokens=true  plan=true
  rerun=true  concurrent=true  page_cache=cold

Exit code: 0 all measured (or extrapolated) and equal, 2 usage, 21 mismatch, 22 could
not measure, 130 interrupted. Records: results/local.
Completion in bash: eval "$(bpe-harness -sc install=bash)". Hydra's own: --hydra-help"""


def usage() -> str:
    """Return every name and setting, with the names that exist now."""
    tags = sorted({tag for card in registry.variants().values() for tag in card.tags})
    names = {
        "variants": variant_names(),
        "tags": tags,
        "data": registry.cards("data"),
        "counting": registry.cards("counting"),
        "pattern": registry.cards("pattern"),
        "measure": registry.cards("measure"),
        "experiment": registry.cards("experiment"),
    }
    lines = []
    for line in TEXT.splitlines():
        filled = line.format(**{key: ", ".join(listed) for key, listed in names.items()})
        lines += (
            textwrap.wrap(filled, 88, subsequent_indent=" " * 15, break_on_hyphens=False) if filled != line else [line]
        )
    return "\n".join(lines)


def variant_names() -> list[str]:
    """The variants in order, a large family and what comes from outside once, by the first word and their number."""
    families: dict[str, list[str]] = {}
    for card in registry.variants().values():
        families.setdefault(kin(card), []).append(card.name)
    names = []
    for card in registry.variants().values():
        siblings = families[kin(card)]
        if len(siblings) <= (1 if OUTSIDE in card.tags else MOST_OF_A_FAMILY):
            names.append(card.name)
        elif card.name == siblings[0]:
            folder = "family" if card.name in registry.presets() else "variant"
            names.append(f"{card.name.partition('_')[0]}_... ({len(siblings)} in conf/{folder})")
    return names


def kin(card: registry.VariantCard) -> str:
    return OUTSIDE if OUTSIDE in card.tags else card.family
