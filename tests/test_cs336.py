"""CS336: ours is called as the assignment has it. command_rows/cs336.toml has the commands."""

from pathlib import Path
from types import ModuleType

import pytest
from shown import blocks_after

from harness.cs336 import AssignmentTokenizer
from harness.tokenizer import train

PAGE = Path(__file__).parent.parent / "docs/how-to/cs336.md"
END = "<|endoftext|>"
TEXT = f"low lower lowest, newest widest: the lowest of the newest.{END}Ein Test, größer 🙃.\n" * 4


@pytest.fixture(scope="module")
def adapters() -> ModuleType:
    """The adapters.py that the page shows."""
    (source,) = blocks_after(PAGE, "<!-- file: adapters.py -->\n```python\n")
    module = ModuleType("adapters")
    exec(source, module.__dict__)
    return module


def test_ours_is_called_and_answers_as_the_assignment_has_it(
    tmp_path: Path, adapters: ModuleType
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    vocab, merges = adapters.run_train_bpe(path, 290, [END])
    assert (vocab, merges) == adapters.run_train_bpe(
        input_path=str(path), vocab_size=290, special_tokens=[END], num_processes=4
    )

    assert (type(vocab), len(vocab), type(merges)) == (dict, 290, list)
    assert {tuple(map(type, merge)) for merge in merges} == {(bytes, bytes)}


def test_a_text_is_the_same_after_encoding_and_decoding(adapters: ModuleType) -> None:
    learned = train([TEXT], 300)
    tokenizer = adapters.get_tokenizer(learned.vocab, learned.merges, [END])
    text = f"Größe {END}{END} 🙃{END}\n\n  low"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert list(tokenizer.encode_iterable(text)) == ids
    assert ids.count(256) == 3


def test_half_a_character_is_replaced_and_files_are_read(
    adapters: ModuleType, tmp_path: Path
) -> None:
    learned = train([TEXT], 300, special_tokens=[])
    plain = adapters.get_tokenizer(learned.vocab, learned.merges)
    assert plain.decode([0xF0, 0x9F]) == "\ufffd"

    learned.save(tmp_path / "saved")
    files = tmp_path / "saved/vocab.json", tmp_path / "saved/merges.txt"
    read = AssignmentTokenizer.from_files(*files, special_tokens=["<|pad|>"])
    assert read.encode(f"{TEXT}<|pad|>") == [*learned.encode(TEXT), 300]
