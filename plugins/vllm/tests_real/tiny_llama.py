"""Makes a model that needs no download: a tiny Llama without weights, and a tokenizer trained on Python's own sources.

python tiny_llama.py FOLDER        (with the Python of vLLM's environment; vLLM fills it with --load-format dummy)
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

VOCABULARY = 8000
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 704,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "hidden_act": "silu",
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16",
}  # fmt: skip
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
    "model_max_length": 4096, "clean_up_tokenization_spaces": False, "chat_template": CHAT,
}  # fmt: skip


def make(folder: Path) -> None:
    """Write the model's files."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train([str(path) for path in sorted(Path(os.__file__).parent.glob("*.py"))], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    ends = {"bos_token_id": 1, "eos_token_id": 2}
    for name, value in (
        ("config", CONFIG),
        ("tokenizer_config", TOKENIZER),
        ("special_tokens_map", names),
        ("generation_config", ends),
    ):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
