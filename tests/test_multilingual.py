"""The multilingual tagger: its scripts, from raw corpora to the word pieces of an encoder, and its page."""

import importlib
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY
from transformers import AutoModel, AutoTokenizer

import hf_xorner
from hf_xorner import CnnLstmCrfConfig, Tagger, WordCharTokenizer
from hf_xorner.export.web import page_facts

CARD = REPOSITORY / "model_cards" / "multilingual-ner"
PAGE = REPOSITORY / "docs" / "multilingual.md"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module


def test_conventions_and_sizes_of_the_pooled_corpora(script, tmp_path, monkeypatch, capsys):
    names = "Herr\tO\nAlt\tB-PER\n\nder\tO\nA.\tB-PER\nGmbH\tI-PER\nBonn\tB-LOC\n\n"
    for corpus, count in (("de-ler", 1), ("de-other", 11), ("fr-one", 2), ("fr-echr", 5)):
        (tmp_path / corpus).mkdir()
        (tmp_path / corpus / "train.iob2").write_text("".join(f"{n}\tO\n{names}" for n in range(count)))
        if corpus != "de-other":  # so a tenth of it is held out
            (tmp_path / corpus / "dev.iob2").write_text(names * 3)
    pooled = tmp_path / "pooled"
    monkeypatch.setattr("sys.argv", ["", f"--data_dir={tmp_path}", f"--output={pooled}", "--kept=6", "--dev=4"])
    script("multilingual_corpora").main()
    # Letters in place of names are unknown, in court decisions alone.
    assert "A.\t?\nGmbH\t?\nBonn\tB-LOC" in (pooled / "parts" / "de-ler.conll").read_text()
    assert "Alt\tB-PER" in (pooled / "parts" / "de-ler.conll").read_text()
    assert "A.\tB-PER\nGmbH\tI-PER" in (pooled / "parts" / "fr-one.conll").read_text()
    # German has about 6 · (22 / 6) ** 0.5 = 11 sentences of 21, and French all of its 4.
    assert len((pooled / "train.conll").read_text().split("\n\n")) == pytest.approx(11 + 4, abs=1)
    assert (pooled / "parts" / "fr-one.conll").read_text().count("\n\n") == 3
    assert not (pooled / "parts" / "fr-echr.conll").exists()


def test_an_encoder_in_4_bits_is_read_with_some_of_its_pieces(script, tmp_path):
    module, draw = script("multilingual_pieces"), np.random.default_rng(0)
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁an", "na", "▁ann", "a", "▁", "n"]
    scores = [0, 0, 0, 0, -1, -1, -9, -2, -3, -4]
    text = [piece.encode() for piece in pieces]
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4")
    tensors, expected = {}, {}

    def add(name, *shape):
        expected[name] = numbers = draw.normal(size=shape).astype("<f4")
        tensors[name] = (0, numbers.size, numbers.tobytes())

    def add_in_4_bits(name, rows, columns):
        blocks, expected[name] = b"", np.zeros((rows, columns), np.float32)
        for row in range(rows):
            for start in range(0, columns, 32):
                numbers, scale = draw.integers(-8, 8, 32), np.float16(draw.random())
                expected[name][row, start : start + 32] = [np.float32(scale) * number for number in numbers]
                low, high = numbers[:16] + 8, numbers[16:] + 8
                blocks += scale.tobytes() + bytes(int(a) + 16 * int(b) for a, b in zip(low, high, strict=True))
        tensors[name] = (1, rows * columns, blocks)

    add_in_4_bits("emb.word", 10, 32)
    for name, shape in {"pos": (8, 32), "type": (1, 32), "ln.w": (32,), "ln.b": (32,)}.items():
        add(f"emb.{name}", *shape)
    for name, (rows, columns) in dict.fromkeys("q k v ao".split(), (32, 32)).items() | {
        ("fi", (64, 32)),
        ("fo", (32, 64)),
    }:
        add_in_4_bits(f"l0.{name}.w", rows, columns)
        add(f"l0.{name}.b", rows)
    for name in ("aln.w", "aln.b", "oln.w", "oln.b"):
        add(f"l0.{name}", 32)
    content = struct.pack("<4sI7ifi", b"E5S1", 1, 32, 1, 2, 64, 10, 8, 1, 1e-12, 32)
    content += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(offsets[-1])) + offsets.tobytes()
    content += np.array(scores, "<f4").tobytes() + b"".join(text) + struct.pack("<iI", 0, 0)
    place, size = len(content), 4 + sum(23 + len(name) for name in tensors)
    content += struct.pack("<i", len(tensors))
    data = b""
    for name, (kind, count, part) in tensors.items():
        content += struct.pack("<H", len(name)) + name.encode()
        content += struct.pack("<BIQQ", kind, count, place + size + len(data), len(part))
        data += part
    content += data

    vocabulary, found = module.read_vocabulary(content)
    assert (vocabulary, found) == (list(zip(pieces, scores, strict=True)), place)
    # "anna" is most often "▁an na"; "▁ann" is rare, and left out.
    kept = module.used_pieces({"anna": 0.9, "na": 0.05, "a": 0.04, "n": 0.01}, vocabulary, 9)
    assert [pieces[row] for row in kept] == ["<s>", "<pad>", "</s>", "<unk>", "▁an", "na", "a", "▁", "n"]
    module.write_encoder(content, place, kept, tmp_path)
    module.tokenizer([vocabulary[row] for row in kept]).save(str(tmp_path / "tokenizer.json"))
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.convert_ids_to_tokens(tokenizer("anna x").input_ids) == ["<s>", "▁an", "na", "▁", "<unk>", "</s>"]
    weights = model.state_dict()
    np.testing.assert_array_equal(weights["embeddings.word_embeddings.weight"], expected["emb.word"][kept])
    np.testing.assert_array_equal(weights["encoder.layer.0.output.dense.weight"], expected["l0.fo.w"])
    np.testing.assert_array_equal(weights["encoder.layer.0.output.LayerNorm.bias"], expected["l0.oln.b"])


def test_tags_of_the_spans_of_a_text(script):
    class Span:
        def __init__(self, start, stop, type):
            self.start, self.stop, self.type = start, stop, type

    spans = [Span(0, 8, "PER"), Span(9, 13, "LOC")]
    assert script("multilingual_scores").tags_of(["Anna", "Alt", "Bonn", "!"], spans) == [
        "B-PER",
        "I-PER",
        "B-LOC",
        "O",
    ]


def test_the_word_rule_knows_elision_and_finnish_case_endings(script, tmp_path):
    WordCharTokenizer.from_corpus([["a"]]).save_pretrained(tmp_path)
    for _ in range(2):  # the second time, nothing changes
        script("multilingual").extend_word_rule(tmp_path / "tokenizer.json")
    tokenizer = WordCharTokenizer.from_pretrained(tmp_path)
    expected = (
        "l' Europa dell' Italia d’ Alger qu' il Jusqu' à rock'n'roll O'Neil N'Djamena do n't n't Ankara'da EU:n USA:ssa"
    )
    text = "l'Europa dell'Italia d’Alger qu'il Jusqu'à rock'n'roll O'Neil N'Djamena don't n't Ankara'da EU:n USA:ssa"
    assert tokenizer.tokenize(text) == expected.split()
    # The browser splits texts by the rule of the model, too.
    pattern = page_facts(CnnLstmCrfConfig(), tokenizer)["pattern"]
    assert pattern != page_facts(CnnLstmCrfConfig(), WordCharTokenizer.from_corpus([["a"]]))["pattern"]


def test_the_model_is_part_of_the_package():
    tagger = Tagger.from_pretrained("multilingual")
    assert tagger.entity_labels == ["LOC", "ORG", "PER"]
    assert Path(hf_xorner.multilingual()).name == CARD.name
    assert [entity.text for entity in tagger("Emmanuel Macron quitta l'Europe.")] == ["Emmanuel Macron", "Europe"]


def test_the_documented_sentences_are_tagged_as_shown():
    table = PAGE.read_text(encoding="utf-8").split("| | sentence | entities |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
    assert len({language for language, _, _ in rows}) >= 32
    found = Tagger.from_pretrained("multilingual")([sentence for _, sentence, _ in rows])
    for (_, sentence, shown), entities in zip(rows, found, strict=True):
        assert shown == (", ".join(f"{each.label} {each.text} {each.score:.2f}" for each in entities) or "–"), sentence
