"""Tokens without a tokenizer: counting, filler and prefixes."""

from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.engine.server.tokens import BYTES_PER_TOKEN, WORDS, Prompt, chat_text, filler, word

BLOCK = 4


def test_every_word_of_the_filler_is_one_token():
    assert {len(text.encode()) for text in WORDS} == {BYTES_PER_TOKEN}


@given(st.integers(0, 500))
def test_an_answer_counts_what_was_asked_for_when_it_comes_back_as_a_prompt(tokens):
    assert Prompt.of_text(filler(tokens)).tokens == tokens
    assert filler(tokens) == "".join(word(number) for number in range(tokens))


@tries(40)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=50))
def test_token_ids_are_counted_exactly(ids):
    prompt = Prompt.of_ids(ids)
    assert prompt.tokens == len(ids)
    assert len(prompt.prefix_ids(BLOCK)) == len(ids) // BLOCK


@tries(40)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_prompts_share_the_ids_of_what_they_share(start, one, other):
    ids = [Prompt.of_text(start + rest).prefix_ids(BLOCK) for rest in (one, other)]
    shared = len(start.encode(errors="replace")) // (BYTES_PER_TOKEN * BLOCK)
    assert ids[0][:shared] == ids[1][:shared]
    assert all(0 <= prefix < 2**63 for prefix in ids[0])


@tries(40)
@given(st.lists(st.integers(0, 9), min_size=8, max_size=40), st.integers(0, 39))
def test_blocks_after_a_difference_have_other_ids(tokens, place):
    changed = list(tokens)
    changed[place % len(tokens)] += 10
    before, after = (Prompt.of_ids(ids).prefix_ids(BLOCK) for ids in (tokens, changed))
    same = place % len(tokens) // BLOCK
    assert before[:same] == after[:same]
    assert all(one != other for one, other in zip(before[same:], after[same:], strict=True))


def test_prompts_of_other_salts_share_nothing():
    prompt = Prompt.of_text("a" * 64)
    assert not set(prompt.prefix_ids(BLOCK)) & set(prompt.prefix_ids(BLOCK, "salt"))


def test_the_next_turn_of_a_chat_begins_like_the_last_one():
    first = [("system", "Be short."), ("user", "Who pays?")]
    answer = filler(12)
    assert chat_text([*first, ("assistant", answer), ("user", "Why?")]).startswith(chat_text(first) + answer)
