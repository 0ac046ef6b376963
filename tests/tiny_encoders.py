"""Contextual encoders of a few weights, tokenizers of every family, and words that are difficult for them."""

import functools
import json

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    GPT2Config,
    GPT2Model,
    GPT2Tokenizer,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

from hf_xorner.models.word_ids import WordPieces

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [chr(index) for index in range(ord("a"), ord("z") + 1)]
BERT_PIECES = [*SPECIAL, "oslo", "rain", "ann", "zeus", "[", "]", ".", "'", *LETTERS, *(f"##{a}" for a in LETTERS)]
TEXTS = ["the rain in Oslo isn't over", "Ann Smith met Zeus in New York .", "12:30 and 1984", "été à Łódź 東京"]
SENTENCES = [text.split() for text in TEXTS]

ODD_WORDS = [
    *("[SEP]", "[PAD]", "<s>", "<mask>", "", " ", "  ", "New York", "\0", "\u200b", "\u00ad", "\ufeff", "e\u0301te"),
    *("İstanbul", "👩🏽‍🚀", "東京", "don't", "O'Brien's", "1984", "Ġ", "▁", "##s", "\n", "\u3000"),
    *("x" * 300, "a-b" * 40),
]

SIZES = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}


def bert_tokenizer():
    return BertTokenizer(vocab={piece: index for index, piece in enumerate(BERT_PIECES)})


def _trained(model, pre_tokenizer, trainer, **options):
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizer
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    backend.train_from_iterator(TEXTS * 5, trainer(special_tokens=special, show_progress=False, **options))
    return backend


@functools.cache
def byte_level_parts():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend = _trained(models.BPE(), split, trainers.BpeTrainer, vocab_size=300, initial_alphabet=alphabet)
    model = json.loads(backend.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def roberta_tokenizer(**options):
    vocabulary, merges = byte_level_parts()
    return RobertaTokenizer(vocab=vocabulary, merges=merges, **options)


def unigram_tokenizer():
    split = pre_tokenizers.Metaspace()
    backend = _trained(models.Unigram(), split, trainers.UnigramTrainer, vocab_size=60, unk_token="<unk>")
    return XLMRobertaTokenizer(vocab=[tuple(entry) for entry in json.loads(backend.to_str())["model"]["vocab"]])


def gpt2_tokenizer(**options):
    vocabulary, merges = byte_level_parts()
    return GPT2Tokenizer(vocab=vocabulary, merges=merges, **options)


def pieces_of(tokenizer):
    return WordPieces(tokenizer.backend_tokenizer.to_str())


def bert(seed=0, layers=3, **fields):
    torch.manual_seed(seed)
    settings = {"num_hidden_layers": layers, "max_position_embeddings": 40, **SIZES, **fields}
    return _spread(BertModel(BertConfig(vocab_size=len(BERT_PIECES), **settings)))


def roberta(seed=0, layers=2, **fields):
    torch.manual_seed(seed)
    settings = {"num_hidden_layers": layers, "max_position_embeddings": 42, "pad_token_id": 1, **SIZES, **fields}
    return _spread(RobertaModel(RobertaConfig(vocab_size=len(byte_level_parts()[0]), **settings)))


def gpt2(seed=0, layers=2, **fields):
    torch.manual_seed(seed)
    settings = {"n_embd": 8, "n_layer": layers, "n_head": 2, "n_positions": 40, **fields}
    return _spread(GPT2Model(GPT2Config(vocab_size=len(gpt2_tokenizer()), **settings)))


@torch.no_grad()
def _spread(model):
    """Spread the weights, so that states differ between pieces and between positions."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def save_encoder(folder, model=None, tokenizer=None):
    """Save an encoder and its tokenizer as a folder of the Hub."""
    (bert() if model is None else model).save_pretrained(folder)
    (bert_tokenizer() if tokenizer is None else tokenizer).save_pretrained(folder)
    return folder


def context_fields(model, pieces, **fields):
    """Return the config fields of a tagger for an encoder."""
    before, after = pieces.frame()
    last = model.config.num_hidden_layers
    return {
        "context_encoder": model.config.to_dict(),
        "context_layers": [last - 1, last],
        "context_window": 12,
        "context_overlap": 4,
        "context_prefix": before,
        "context_suffix": after,
        **fields,
    }
