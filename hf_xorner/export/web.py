"""A static page that tags text in the browser, for one model."""

from __future__ import annotations

import itertools
import json
from importlib.resources import files
from pathlib import Path

import torch

from ..files import GRAPH_FILE, check_only_replaces, expanded, write_whole
from ..loading import load
from ..models.configuration_tagger import TaggerConfig
from ..models.tokenization_word_char import WordCharTokenizer
from ..models.word_ids import FALLBACKS, WordPieces, character_ids
from .javascript import javascript_pattern

PAGE_FACTS_FILE = "tagger.json"

#: The npm packages of the page, the folder of their files, and the files. The second package is only for pieces.
RUNTIME = "onnxruntime-web"
TOKENIZERS = "@huggingface/tokenizers"
PACKAGES = {
    RUNTIME: ("ort", ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")),
    TOKENIZERS: ("tokenizers", ("tokenizers.min.mjs",)),
}


def export_page(
    source: str, output: str | Path, precision: str = "fp32", node_modules: str | Path | None = None
) -> list[Path]:
    """Write a page for a saved model, for any server of static files.

    Args:
        source: The model's folder, or its repository on the Hub.
        output: The folder to write to.
        precision: See `onnx_model`.
        node_modules: The folder node_modules with the npm packages; by default in the current folder or one above it.

    Returns:
        The written files.

    Raises:
        ValueError: If an npm package is missing.
    """
    from .onnx import onnx_model  # `write_page` does not need the package onnx

    model, tokenizer = load(source, dtype=torch.float32)
    return write_page(
        expanded(output), model.config, tokenizer, onnx_model(model, precision).SerializeToString(), node_modules
    )


def write_page(
    folder: Path, config: TaggerConfig, tokenizer: WordCharTokenizer, model: bytes, node_modules: str | Path | None
) -> list[Path]:
    """Write the files of a page for the ONNX model of a tagger; see `export_page`."""
    names = [RUNTIME, *([TOKENIZERS] if tokenizer.pieces else [])]
    contents = {
        file.name: file.read_bytes() for file in files(__package__).joinpath("page").iterdir() if file.is_file()
    }
    for name, package in zip(names, find_packages(names, node_modules), strict=True):
        target, scripts = PACKAGES[name]
        contents |= {f"{target}/{script}": (package / "dist" / script).read_bytes() for script in scripts}
    facts = json.dumps(page_facts(config, tokenizer), ensure_ascii=False)
    contents = {PAGE_FACTS_FILE: facts.encode(), GRAPH_FILE: model, **contents}
    check_only_replaces(folder, contents, PAGE_FACTS_FILE)
    return [write_whole(folder / name, content) for name, content in contents.items()]


def page_facts(config: TaggerConfig, tokenizer: WordCharTokenizer) -> dict:
    """Return the content of tagger.json: labels, vocabulary, word rule and look-up."""
    policies = tokenizer.init_kwargs
    casing, digits = policies["casing"], policies["digits"]
    forms = [(casing, "keep"), (casing, digits)]
    for lower, zero in (FALLBACKS[step] for step in policies["fallback"]):
        forms.append((lower if casing == "keep" else casing, zero if digits == "keep" else digits))
    table = character_ids(tokenizer.characters, digits == "zero").tolist()
    vocabulary = tokenizer.get_vocab()
    rule = json.loads(tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]["pattern"]["Regex"]
    return {
        "pattern": javascript_pattern(rule),
        "words": sorted(vocabulary, key=vocabulary.__getitem__),
        "forms": forms,
        "max_word_chars": tokenizer.max_word_chars,
        "character_runs": [(value, len(list(run))) for value, run in itertools.groupby(table)],
        "pieces": tokenizer.pieces and piece_facts(tokenizer.pieces, tokenizer.max_word_pieces),
        "labels": config.labels,
        "min_score": getattr(config, "min_score", None),
    }


def piece_facts(pieces: WordPieces, width: int) -> dict:
    """Return the part of tagger.json for an encoder's pieces."""
    parts = json.loads(pieces.to_str())
    # "[SEP]" in a text is an ordinary word.
    parts["added_tokens"] = [token for token in parts["added_tokens"] if not token["special"]]
    normalizer = parts["normalizer"] or {}
    lowers = normalizer.get("type") == "BertNormalizer" and normalizer["lowercase"]
    return {"tokenizer": parts, "blank": pieces.blank, "width": width, "lowers": lowers}


def find_packages(names: list[str], node_modules: str | Path | None) -> list[Path]:
    """The folders of npm packages.

    Raises:
        ValueError: If a package, or a file of it, is missing.
    """
    above = [Path.cwd(), *Path.cwd().parents]
    folders = [Path(node_modules)] if node_modules else [folder / "node_modules" for folder in above]
    packages = []
    for name in names:
        complete = [
            folder for folder in folders if all((folder / name / "dist" / file).is_file() for file in PACKAGES[name][1])
        ]
        if not complete:
            where = node_modules or "a folder node_modules here or above"
            raise ValueError(f"the npm package {name} is not in {where}: npm install {' '.join(names)}")
        packages.append(complete[0] / name)
    return packages
