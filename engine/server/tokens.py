"""Tokens without a tokenizer: a token is four bytes of text, in what is asked and in what is answered."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

BYTES_PER_TOKEN = 4
"""About what English text has."""

_TEXT = """
The bus ran all day and let any who had the fee get on. Few got off but two men got in. You pay for how far you go.
"""
WORDS = tuple(f"{word} " for word in _TEXT.split())
"""Each is one token by the rule above, its blank included."""


class Prompt(NamedTuple):
    """A prompt as bytes, so many of which are one token."""

    raw: bytes
    token_bytes: int

    @classmethod
    def of_text(cls, text: str) -> Prompt:
        """A prompt of text, whose length is estimated: one token per four bytes of UTF-8, the last perhaps in part."""
        return cls(text.encode(errors="replace"), BYTES_PER_TOKEN)

    @classmethod
    def of_ids(cls, ids: Sequence[int]) -> Prompt:
        """A prompt of token ids (0 to 2⁶⁴ − 1), whose length is exact."""
        raw = array("Q", ids)
        return cls(raw.tobytes(), raw.itemsize)

    @property
    def tokens(self) -> int:
        """Its length."""
        return -(-len(self.raw) // self.token_bytes)

    def prefix_ids(self, block_size: int, salt: str = "") -> tuple[int, ...]:
        """One id of 63 bits per full block of tokens: equal where two prompts of one salt agree up to that block."""
        size = self.token_bytes * block_size
        ids: list[int] = []
        link = salt.encode(errors="replace")
        for end in range(size, len(self.raw) + 1, size):
            link = blake2b(link + self.raw[end - size : end], digest_size=8).digest()
            ids.append(int.from_bytes(link) >> 1)
        return tuple(ids)


def chat_text(messages: Iterable[tuple[str, str]]) -> str:
    """Messages (role, content) as the one text that a chat template makes of them."""
    return "".join(f"<|{role}|>\n{content}\n" for role, content in messages) + "<|assistant|>\n"


def word(number: int) -> str:
    """The text of the token at a place of an answer."""
    return WORDS[number % len(WORDS)]


def filler(tokens: int) -> str:
    """An answer of exactly so many tokens."""
    rounds, rest = divmod(tokens, len(WORDS))
    return "".join(WORDS) * rounds + "".join(islice(WORDS, rest))
