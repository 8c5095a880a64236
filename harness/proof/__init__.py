"""What is right: worked examples, checks of any trainer or counter, and the true counts behind
every merge.

In: a trainer, a counter, or a list of merges with the words it was made of. Out: the checks that
failed, with a small input that shows it; for merges, which of them were the most frequent pair
of their moment.
"""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from harness.common.cards import Whole

Kind = Literal["identical", "identical_up_to_ties", "different_by_design", "wrong", "unproved"]
KINDS: tuple[Kind, ...] = get_args(Kind)
IDENTICAL, UP_TO_TIES, BY_DESIGN, WRONG, UNPROVED = KINDS
PROVED = (IDENTICAL, UP_TO_TIES)
Token = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
Pair = Annotated[list[Token], Meta(min_length=2, max_length=2)]


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether merges are the defined ones, as records hold it."""

    kind: Kind
    """Whether the merges are the defined ones."""
    tie_break: str | None = None
    """The tie-break of the contract under which they are."""
    reason: str | None = None
    """Why they are not, in a sentence."""
    merge: Whole | None = None
    """The number, from 1, of the first merge that shows it."""
    got: Pair | None = None
    """That merge, left and right token in hexadecimal."""
    want: Pair | None = None
    """The most frequent pair at that moment."""
    got_count: Whole | None = None
    """The true count of the one."""
    want_count: Whole | None = None
    """The true count of the other."""
    of_own_words: str | None = None
    """The kind of the same merges on the words of the trainer's own pattern."""
