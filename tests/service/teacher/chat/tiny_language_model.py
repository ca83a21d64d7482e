"""A tiny language model, trained here in seconds, in a folder that `transformers serve` can serve.

Every word that it does not know is one token. It has learned to answer a prompt with the class that
goes with the last word that it knows; that is all, and enough to be asked like a large one.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = {"Billing": ("invoice", "refund"), "Network": ("router", "wifi")}
_CONTEXT, _STEPS, _ROWS = 48, 150, 32
_CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}{{ ' answer' }}"


def make_tokenizer() -> PreTrainedTokenizerFast:
    known = [word for name, words in WORDS.items() for word in (name, *words)]
    vocabulary = ["<unknown>", "</s>", "answer", *known]
    words = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(vocabulary)}, "<unknown>")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"unk_token": "<unknown>", "eos_token": "</s>", "pad_token": "</s>"}
    made = PreTrainedTokenizerFast(tokenizer_object=words, **special)
    made.chat_template = _CHAT
    return made


def make_model(tokens: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=4_096,
        bos_token_id=None,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    number = dict(tokens.get_vocab())
    pairs = [(number[word], number[name]) for name, words in WORDS.items() for word in words]
    for _ in range(_STEPS):
        rows = torch.zeros(_ROWS, _CONTEXT, dtype=torch.long)
        for row in rows:
            word, label = pairs[int(torch.randint(len(pairs), ()))]
            for place in torch.randint(_CONTEXT - 10, (6,)).tolist():
                row[place] = pairs[int(torch.randint(len(pairs), ()))][0]
            row[int(torch.randint(_CONTEXT - 10, _CONTEXT - 3, ()))] = word
            row[-3], row[-2], row[-1] = number["answer"], label, number["</s>"]
        targets = torch.full_like(rows, -100)
        targets[:, -2:] = rows[:, -2:]
        loss = model(input_ids=rows, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
    return model


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    tokenizer = make_tokenizer()
    make_model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
