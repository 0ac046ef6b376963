"""The page of an export: its tokenizer against the Python one, its files, and what it shows in Chromium."""

import functools
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from importlib.resources import files

import numpy as np
import pytest
import tiny_encoders as tiny
from conftest import LABELS, REPOSITORY, SENTENCES
from random_texts import KNOWN, TEXTS, UNKNOWN

from hf_xorner import BiLstmCnnConfig, BiLstmCnnForTokenClassification, Tagger, WordCharTokenizer, load_corpus
from hf_xorner.cli import main
from hf_xorner.export.web import PACKAGES, find_packages, page_facts, write_page

SCRIPT = str(files("hf_xorner.export") / "page" / "tagger.js")
#: Reads texts and facts of a tokenizer, and prints words with their offsets and ids.
IN_NODE = f"""
import {{ readFileSync }} from "node:fs";
import {{ WordTokenizer }} from {json.dumps("file://" + SCRIPT)};
const {{ facts, texts }} = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = new WordTokenizer(facts);
console.log(JSON.stringify(texts.map((text) => {{
  const offsets = tokenizer.words(text);
  const {{ input_ids: [ids], char_ids: [charIds, [, width]], word_index: [index] }} =
    tokenizer.inputs(offsets.map(([a, b]) => text.slice(a, b)));
  return [offsets, ...[ids, charIds, index].map((values) => Array.from(values, Number)), width];
}})));
"""
#: Tags texts in the page, and times it.
TAG_ALL = """async (texts) => {
  const all = [], begun = performance.now();
  all.push(...(await tagger.tag(texts)));
  return [all, performance.now() - begun];
}"""
SIGNS = (
    "don't U.S. Mr. 's http://x.co/a_(b) WWW.a # @me <3 :-) ^_^ 3.5 1,000 -2 &amp; &#39; '90s C# AC/DC r/abc ... -- "
    "東京 タワー 한국 שלום צה\"ל ٣٫٥ ſ İ ß Σ 🇸🇪 👩🏽‍🚀 K １ N'T a@b.com [PAD] [UNK] C++ \U00010400 \U0010ffff \ue000"
).split()
SIGNS += ["\u0301", "\u00ad", "\u200d", "\ufeff", "\u0085", "\u00a0", "\n", "\t", "\0", "no. 5", "'LL"]


@pytest.fixture(scope="module")
def node():
    """The program Node.js, with the expressions of Unicode sets."""
    program = shutil.which("node")
    if program is None or subprocess.run([program, "-e", "/[a&&b]/v"], capture_output=True).returncode:
        pytest.skip("there is no Node.js from version 20 up")
    return program


def config_of(tokenizer):
    return BiLstmCnnConfig(**tokenizer.model_fields(), id2label={0: "O", 1: "B-PER"})


def nasty_texts(count):
    chooser = random.Random(0)

    def part():
        kind = chooser.random()
        if kind < 0.6:
            return chooser.choice([*SIGNS, *KNOWN, *UNKNOWN])
        if kind < 0.8:
            return chr(chooser.choice([chooser.randrange(0x20, 0x250), chooser.randrange(0x370, 0x530)]))
        return "".join(chooser.choices("abXY09.,:;!?'\"-_/\\()[]{}<>@#$%^&*+=~`| ", k=3))

    return ["".join(part() + chooser.choice(["", " "]) for _ in range(chooser.randrange(12))) for _ in range(count)]


def in_units(text, offsets):
    """Offsets in UTF-16 units of those in code points."""
    return [[len(text[:offset].encode("utf-16-le")) // 2 for offset in pair] for pair in offsets]


@pytest.mark.parametrize(
    "policies",
    [{}, {"casing": "lower", "max_word_chars": 3}, {"digits": "zero", "fallback": ["lower", "lower_zero"]}],
    ids=str,
)
def test_words_and_ids_in_javascript_are_those_in_python(node, policies):
    tokenizer = WordCharTokenizer.from_corpus([*SENTENCES, ["E\u0301TE", "i", "στος", "40", "4", "ab4"]], **policies)
    texts = [*nasty_texts(200), *TEXTS, "AB7", "", "a" * 3000, "a." * 20_000, "(" * 5000]
    sent = json.dumps({"facts": page_facts(config_of(tokenizer), tokenizer), "texts": texts})
    command = [node, "--input-type=module", "-e", IN_NODE]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for text, (offsets, ids, char_ids, index, width) in zip(texts, json.loads(done.stdout), strict=True):
        words = tokenizer.words_of([text], False)
        assert offsets == in_units(text, words.offsets.tolist()), repr(text[:100])
        assert index == words.row.tolist()
        assert ids == words.input_ids.tolist(), repr(text[:100])
        assert width == words.char_ids.shape[1]
        assert char_ids == words.char_ids.flatten().tolist()


#: Reads labels and log probabilities of words, and prints the entities.
ENTITIES_IN_NODE = f"""
import {{ readFileSync }} from "node:fs";
import {{ Tagger }} from {json.dumps("file://" + SCRIPT)};
const {{ facts, text, offsets, labels, logProbs }} = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(new Tagger(null, null, facts).entities(text, offsets, labels, logProbs)));
"""


@pytest.mark.parametrize("min_score", [None, 0.4, {"PER": 0.5}], ids=str)
def test_entities_in_javascript_are_those_in_python(node, tokenizer, min_score):
    config = BiLstmCnnConfig(**tokenizer.model_fields(), id2label=dict(enumerate(LABELS)), min_score=min_score)
    tagger = Tagger(BiLstmCnnForTokenClassification(config), tokenizer)
    chooser = np.random.default_rng(0)
    text = "👩 Ann " * 200
    words = tokenizer.words_of([text], False)
    labels = chooser.integers(0, len(LABELS), len(words.row))
    log_probs = -chooser.exponential(0.3, (len(labels), 2)).astype(np.float32)
    tagger.label_words = lambda *_, **__: (labels.copy(), log_probs)
    sent = {"facts": page_facts(config, tokenizer), "text": text, "offsets": in_units(text, words.offsets.tolist())}
    sent |= {"labels": labels.tolist(), "logProbs": log_probs.flatten().tolist()}
    command = [node, "--input-type=module", "-e", ENTITIES_IN_NODE]
    done = subprocess.run(command, input=json.dumps(sent), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    entities, expected = json.loads(done.stdout), tagger(text)
    assert len(expected) > 20
    spans = [(entity["label"], entity["text"], entity["start"], entity["end"]) for entity in entities]
    assert spans == [(entity.label, entity.text, entity.start, entity.end) for entity in expected]
    assert [entity["score"] for entity in entities] == pytest.approx([entity.score for entity in expected], abs=1e-6)


@pytest.fixture
def packages(tmp_path):
    """A folder of npm packages, whose files are empty."""
    for name, (_, names) in PACKAGES.items():
        (tmp_path / "node_modules" / name / "dist").mkdir(parents=True)
        for script in names:
            (tmp_path / "node_modules" / name / "dist" / script).touch()
    return tmp_path / "node_modules"


@pytest.mark.parametrize("pieces", [False, True])
def test_a_page_only_refers_to_files_that_it_has(tmp_path, packages, tokenizer, pieces):
    if pieces:
        tokenizer = WordCharTokenizer.from_corpus(SENTENCES, pieces=tiny.pieces_of(tiny.bert_tokenizer()))
    site = tmp_path / "site"
    written = write_page(site, config_of(tokenizer), tokenizer, b"model", packages)
    assert set(written) == {path for path in site.rglob("*") if path.is_file()}
    assert (site / "tokenizers").exists() == pieces
    if pieces:  # "[SEP]" in a text is an ordinary word
        assert json.loads((site / "tagger.json").read_text())["pieces"]["tokenizer"]["added_tokens"] == []
    for name in ("index.html", "page.js", "tagger.js", "style.css"):
        text = (site / name).read_text()
        assert "//" not in re.sub(r"^\s*(//|/?\*).*|\s// .*", "", text, flags=re.MULTILINE), name
        for named in re.findall(r'(?:href|src|from) ?=? ?"(?:\./)?([\w./-]+)"', text):
            assert (site / named).is_file(), named
    write_page(site, config_of(tokenizer), tokenizer, b"other", packages)
    assert (site / "model.onnx").read_bytes() == b"other"
    (site / "tagger.json").unlink()
    with pytest.raises(ValueError, match="exists; name another folder"):
        write_page(site, config_of(tokenizer), tokenizer, b"model", packages)


#: ONNX Runtime Web for a page without a browser: all words are one person, and two words raise.
RUNTIME_STUB = """
export const env = { wasm: {} };
export class Tensor { constructor(type, data, shape) { Object.assign(this, { type, data, shape }); } }
const run = async ({ word_index: { shape: [, count] } }) => {
  if (count === 2) throw new Error("two words are too many");
  return { labels: { data: Array(count).fill(1n) }, path_log_probs: { data: Array(2 * count).fill(0) } };
};
export const InferenceSession = { create: async () => ({ run }) };
"""
#: Types texts into the page, and prints its state after each one.
TYPE_IN_NODE = """
import { readFileSync } from "node:fs";
const texts = JSON.parse(readFileSync(0, "utf8")), listeners = [];
const element = () => ({
  value: texts[0], append() {}, replaceChildren() {}, style: { setProperty() {} },
  addEventListener: (name, listener) => listeners.push(listener),
});
const elements = { text: element(), state: element(), marked: element(), list: element() };
globalThis.document = { getElementById: (id) => elements[id], createElement: element };
globalThis.fetch = async (url) => ({ json: async () => JSON.parse(readFileSync(url, "utf8")) });
const wait = () => new Promise((done) => setTimeout(done, 50));
const states = [];
await import(process.argv[1]);
for (const text of texts) {
  await wait();
  states.push(elements.state.textContent);
  elements.text.value = texts[states.length];
  if (states.length < texts.length) listeners.forEach((listener) => listener());
}
console.log(JSON.stringify(states));
"""


@pytest.mark.parametrize("texts", [["Ann", "Ann fails", "Ann"], ["Ann fails", "Ann"]], ids=len)
def test_a_text_that_fails_does_not_stop_the_page(node, tmp_path, packages, tokenizer, texts):
    (packages / "onnxruntime-web" / "dist" / "ort.wasm.min.mjs").write_text(RUNTIME_STUB)
    write_page(tmp_path / "site", config_of(tokenizer), tokenizer, b"model", packages)
    (tmp_path / "site" / "package.json").write_text('{"type": "module"}')
    command = [node, "--input-type=module", "-e", TYPE_IN_NODE, (tmp_path / "site" / "page.js").as_uri()]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for text, state in zip(texts, json.loads(done.stdout), strict=True):
        assert state.startswith("1 entity" if text == "Ann" else "This text could not be tagged: two words"), state


def test_the_page_allows_its_own_files_alone():
    folder = files("hf_xorner.export") / "page"
    page = (folder / "index.html").read_text()
    code = (folder / "page.js").read_text() + (folder / "tagger.js").read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', page)
    allowed = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert allowed.pop("script-src") == "'self' 'wasm-unsafe-eval'"  # page.js, its modules, and ONNX Runtime
    assert allowed.pop("img-src") == "data:"  # the empty icon
    assert set(allowed.values()) == {"'none'", "'self'"} and allowed["default-src"] == "'none'"
    # Nothing that the policy would refuse.
    assert not re.search(r"<style|\bstyle=|\bon\w+=|<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\beval\(|new Function|new Worker|innerHTML|cssText", code)
    assert page.index("Content-Security-Policy") < page.index("<link")


def test_a_missing_package_is_named(tmp_path, monkeypatch, packages):
    monkeypatch.chdir(tmp_path)
    assert find_packages(["onnxruntime-web"], None) == [packages / "onnxruntime-web"]
    (packages / "onnxruntime-web" / "dist" / "ort.wasm.min.mjs").unlink()
    with pytest.raises(ValueError, match=r"the npm package onnxruntime-web is not in .*: npm install onnxruntime-web"):
        find_packages(["onnxruntime-web"], packages)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture
def served():
    """Serve a folder; returns the address of its page."""
    servers = []

    def serve(folder):
        handler = functools.partial(Quiet, directory=str(folder))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/index.html"

    yield serve
    for server in servers:
        server.shutdown()


@pytest.fixture
def chromium_page():
    """An empty page of Chromium, and the addresses that it asks for."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or pytest.skip("Chromium is not installed")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        yield page, requests
        browser.close()


@pytest.mark.slow
def test_the_shipped_model_finds_the_same_entities_in_chromium_as_in_python(
    tmp_path, chromium_page, served, corpora, capsys
):
    pytest.importorskip("onnx", reason="onnx is not installed")
    node_modules = os.environ.get("HF_XORNER_NODE_MODULES") or pytest.skip(
        "HF_XORNER_NODE_MODULES does not name a folder with the npm packages of the page"
    )
    source = str(REPOSITORY / "model_cards" / "english-ner-small")
    tagger = Tagger.from_pretrained(source)
    main("export", [source, "--to", "web", "--output", str(tmp_path), "--node_modules", node_modules])
    capsys.readouterr()
    (page, requests), address = chromium_page, served(tmp_path)
    page.goto(address)
    page.locator("#list tr").first.wait_for()
    assert page.inner_text("#list tr td:first-child") == "Ann Smith"
    sentences = load_corpus("wnut17", data_dir=str(corpora / "wnut17"))["test"]["tokens"][:1000]
    texts = [*map(" ".join, sentences), *nasty_texts(1000)]
    tagged, milliseconds = page.evaluate(TAG_ALL, texts)
    with capsys.disabled():
        sys.stdout.write(f"\n{page.inner_text('#state')} 2,000 texts: {milliseconds / 2000:.2f} ms each\n")
    for text, entities, expected in zip(texts, tagged, tagger(texts), strict=True):
        assert [(entity["label"], entity["text"], entity["start"], entity["end"]) for entity in entities] == [
            (entity.label, entity.text, entity.start, entity.end) for entity in expected
        ]
        units = in_units(text, [(entity.start, entity.end) for entity in expected])
        assert [[entity["startUnit"], entity["endUnit"]] for entity in entities] == units
        assert [entity["score"] for entity in entities] == pytest.approx(
            [entity.score for entity in expected], abs=1e-4
        )
    page.fill("#text", "Bob saw Ann in Paris .")
    page.locator("#marked", has_text=re.compile("^Bob")).wait_for()
    (last,) = [tagger("Bob saw Ann in Paris .")]
    assert page.locator("#list tr").count() == page.locator("#marked mark").count() == len(last)
    assert {url.split("/")[2] for url in requests if url.startswith("http")} == {address.split("/")[2]}
