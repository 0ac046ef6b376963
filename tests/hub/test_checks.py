"""The checks before publishing: each fault is found, and a valid folder passes."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ARCHITECTURES, REPOSITORY, build_model
from safetensors.numpy import save_file

from hf_xorner.hub import Unfit, check_folder
from hf_xorner.hub.checks import faults_of_text, read_text, secrets_in, sentences_in, sentences_of
from hf_xorner.training.model_files import files_of_model, travelling_modules

CARD = "---\nlicense: mit\nwidget:\n- text: Ann met Zeus\n---\n# A tagger\n"
TOKEN = "hf_" + "aBcDeFgHiJ" * 3


@pytest.fixture(scope="session")
def saved(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("saved") / "tagger"
    build_model("cross-bilstm-cnn", tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "tagger"))


@pytest.fixture
def unloaded(monkeypatch):
    """Start no process; return the sentences that it would have tagged."""
    seen = []

    def tag(folder, names, sentences):
        seen.append((names, sentences))
        return []

    monkeypatch.setattr("hf_xorner.hub.checks.tag_in_new_process", tag)
    return seen


def faults(folder, **options):
    try:
        check_folder(folder, **options)
    except Unfit as error:
        return str(error).splitlines()
    return []


def fault(folder, **options):
    (only,) = faults(folder, **options)
    assert only.endswith(".")
    return only


# --- What is uploaded -------------------------------------------------------------------------------------------------


def test_training_files_are_not_uploaded(folder, unloaded):
    good = check_folder(folder)
    for file in good.files:
        content = (folder / file.name).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    strangers = ["training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "notes.txt", "secret.py"]
    strangers += ["pytorch_model.bin", "trainer_state.json", ".env", "model.pkl", "model.safetensors.bak", "train.log"]
    for name in strangers:
        (folder / name).write_bytes(b"x")
    (folder / "checkpoint-7").mkdir()
    shutil.copyfile(folder / "model.safetensors", folder / "checkpoint-7" / "model.safetensors")
    checked = check_folder(folder)
    assert checked.files == good.files
    assert checked.left == sorted([*strangers, "checkpoint-7/"])
    assert good.left == []


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_uploaded_files_are_the_saved_files(kind, tokenizer, tmp_path):
    build_model(kind, tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert files_of_model(tmp_path) == sorted(path.name for path in tmp_path.iterdir())
    assert travelling_modules(tmp_path) == sorted(path.stem for path in tmp_path.glob("*.py"))


def test_images_in_the_card_are_uploaded(folder, unloaded):
    (folder / "plots").mkdir()
    for name in ("a.png", "plots/b.svg", "plots/unseen.png"):
        (folder / name).write_bytes(b"<svg/>")
    shown = "![one](./plots/b.svg) ![two](https://x.org/c.png) ![three](../d.png) <img src='a.png'>"
    (folder / "README.md").write_text(CARD + shown, encoding="utf-8")
    names = [file.name for file in check_folder(folder).files]
    assert {name for name in names if name.endswith(("png", "svg"))} == {"a.png", "plots/b.svg"}


def rename_weights(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def break_weights(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)


def take_code_from_elsewhere(folder):
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoConfig"] = "mallory/x--configuration.Config"
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (rename_weights, "no model.safetensors, but pytorch_model.bin"),
        (break_weights, "model.safetensors cannot be read"),
        (take_code_from_elsewhere, "mallory/x--configuration.Config from another repository"),
        (shutil.rmtree, "is not a folder"),
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        *(
            (lambda folder, name=name: (folder / name).write_bytes(b"x"), "rename the file")
            for name in ("a\nb.png", "a\\b.png")
        ),
    ],
)
def test_a_faulty_model_is_not_loaded(folder, unloaded, spoil, complaint):
    spoil(folder)
    assert complaint in fault(folder)
    assert unloaded == []


# --- Single faults ----------------------------------------------------------------------------------------------------


def test_missing_shards_are_refused(folder, unloaded):
    shards = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    index = {"metadata": {}, "weight_map": dict(zip("ab", shards, strict=True))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").rename(folder / shards[0])
    assert f"names {shards[1]}" in fault(folder)
    shutil.copyfile(folder / shards[0], folder / shards[1])
    assert faults(folder) == []


def test_a_missing_card_is_refused(folder, unloaded):
    (folder / "README.md").unlink()
    assert "has no README.md" in fault(folder)
    assert faults(folder, card=False) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("---\nlicense: [\n---\n", "cannot be read"),
        ("---\n- a\n---\n", "cannot be read"),
        ("# A tagger\n", "no metadata"),
        ("---\nmodel-index:\n- results: 3\n---\n", "cannot be read"),
        ("---\nmodel-index: [{name: x, results: [{task: {}, dataset: 3, metrics: [4]}]}]\n---\n", "cannot be read"),
        ("---\na: &a [x]\nb: *a\n---\n", "line 3 has an alias"),
        ("---\na: &a {b: 1}\nc:\n  <<: *a\n---\n", "line 4 has an alias"),
        ("---\na: !!int ''\n---\n", "line 2 has an alias or a tag"),
        (f"---\na: {'[' * 100_000}\n---\n", "nested"),
        *((f"---\n{text}\n---\n", "cannot be read") for text in ("1: 2", "self: 1", "tags: 3", "d: 2024-13-45", "x")),
        (CARD + "![a](gone.png)", "shows gone.png"),
    ],
)
def test_an_invalid_card_is_refused(folder, unloaded, text, complaint):
    (folder / "README.md").write_text(text, encoding="utf-8")
    found = fault(folder)
    assert "README.md" in found
    assert complaint in found


def test_files_that_are_too_large_are_refused(folder, unloaded):
    largest = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    size = largest.stat().st_size / 1e6
    assert f"{largest.name} has" in fault(folder, max_file_mb=size * 0.999)
    assert faults(folder, max_file_mb=size * 1.001) == []


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json", "facts.json"])
@pytest.mark.parametrize(
    "text",
    ["[]", "3", "", "{", '{"a": NaN}', "[" * 100_000, '{"a":' * 200 + "1" + "}" * 200],
    ids=lambda text: text[:8],
)
def test_invalid_json_is_refused(folder, unloaded, name, text):
    (folder / name).write_text(text)
    assert any(one.startswith(f"{name} cannot be read") for one in faults(folder))
    assert unloaded == []


@pytest.mark.parametrize("index", [{"weight_map": 3}, {"weight_map": {"a": [1]}}, {"weight_map": {"a": 1}}, {}])
def test_an_invalid_shard_index_is_refused(folder, unloaded, index):
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert fault(folder).startswith("model.safetensors.index.json is not an index")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("auto_map", 3), ("auto_map", {"AutoConfig": [3, ["x"], None, {}]}), ("auto_map", {"AutoConfig": "\0.X"})),
        *(("auto_map", {"AutoConfig": "a" * 5000 + ".X"}), ("auto_map", {"AutoConfig": "a\nb.X"})),
        *(("custom_pipelines", [1]), ("custom_pipelines", {"a": 3}), ("custom_pipelines", {"a": {"impl": 5}})),
    ],
)
def test_configs_with_wrong_types_give_one_line_errors(folder, unloaded, name, value):
    for file in ("config.json", "tokenizer_config.json"):
        config = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**config, name: value}))
    assert all(one.endswith(".") and len(one) < 500 for one in faults(folder))


def test_missing_images_of_any_name_are_refused(folder, unloaded):
    (folder / "README.md").write_text(f"{CARD}![x]({'a' * 5000}.png) {'![' * 20000} {'<img ' * 5000}", encoding="utf-8")
    assert "does not exist" in fault(folder)


def test_missing_code_is_refused(folder, unloaded):
    (folder / "tags.py").unlink()
    assert "lacks tags.py" in faults(folder)[0]
    assert unloaded == []


def test_a_pipeline_of_another_repository_is_refused(folder, unloaded):
    """A config may name a pipeline, whose code is loaded like that of a model."""
    config = json.loads((folder / "config.json").read_text())
    config["custom_pipelines"] = {"ner": {"impl": "mallory/x--tagging.Tagging", "pt": ["AutoModel"]}}
    (folder / "config.json").write_text(json.dumps(config))
    assert "mallory/x--tagging.Tagging from another repository" in fault(folder)
    config["custom_pipelines"] = {"ner": {"impl": "tagging.Tagging", "pt": ["AutoModel"]}}
    (folder / "config.json").write_text(json.dumps(config))
    assert "lacks tagging.py" in fault(folder)
    assert unloaded == []


def test_code_that_differs_from_the_package_is_not_run(folder, tmp_path):
    path = folder / "configuration_tagger.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + path.read_text())
    assert any(one.startswith("configuration_tagger.py is not the file") for one in faults(folder))
    assert not (tmp_path / "ran").exists()


def test_a_module_that_the_package_does_not_have_is_refused(folder, unloaded):
    (folder / "more.py").write_text("")
    module = folder / "tags.py"
    module.write_text(f"{module.read_text()}\nfrom .more import x\n")
    assert [one.split()[0] for one in faults(folder)] == ["more.py", "tags.py"]
    assert unloaded == []


# --- Links ------------------------------------------------------------------------------------------------------------


def private(tmp_path, name, content=b"private"):
    path = tmp_path / "home" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["LICENSE", "a.png", "config.json", "README.md", "facts.json", "tags.py"])
def test_links_out_of_the_folder_are_refused(folder, unloaded, tmp_path, name):
    path = folder / name
    content = path.read_bytes() if path.exists() else b"private"
    path.unlink(missing_ok=True)
    path.symlink_to(private(tmp_path, name, content))
    found = fault(folder)
    assert found.startswith(f"{name} lies outside of {folder}")
    assert unloaded == []


@pytest.mark.parametrize("relative", [False, True])
def test_a_folder_that_is_a_link_is_refused(folder, unloaded, tmp_path, relative):
    private(tmp_path, "b.svg")
    (folder / "plots").symlink_to("../home" if relative else tmp_path / "home")
    (folder / "README.md").write_text(CARD + "![](plots/b.svg)", encoding="utf-8")
    assert fault(folder).startswith("plots/b.svg lies outside of ")


def test_links_inside_the_folder_and_to_it_are_followed(folder, unloaded, tmp_path):
    (folder / "real.txt").write_text("Apache")
    (folder / "LICENSE").symlink_to("real.txt")
    (folder / "a.png").symlink_to("gone")
    (tmp_path / "latest").symlink_to(folder)
    assert "LICENSE" in [file.name for file in check_folder(tmp_path / "latest").files]


def in_the_cache(folder, tmp_path, size=64):
    """A folder with links to blobs, like the cache of the Hub."""
    repository = tmp_path / "models--ann--tagger"
    snapshot = repository / "snapshots" / ("c" * 40)
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        blob = repository / "blobs" / f"{number:0{size}x}"
        shutil.copyfile(path, blob)
        (snapshot / path.name).symlink_to(f"../../blobs/{blob.name}")
    return snapshot


def test_links_of_the_hub_cache_to_its_blobs_are_followed(folder, unloaded, tmp_path):
    snapshot = in_the_cache(folder, tmp_path)
    good = check_folder(folder)
    assert check_folder(snapshot).files == good.files
    blobs = snapshot.parent.parent / "blobs"
    (blobs / ("f" * 64)).symlink_to(private(tmp_path, "key"))
    (blobs / "key").write_text("private")
    other = in_the_cache(folder, tmp_path / "other").parent.parent / "blobs"
    for place in (f"../../blobs/{'f' * 64}", "../../blobs/key", other / f"{0:064x}"):
        (snapshot / "LICENSE").symlink_to(place)
        assert fault(snapshot).startswith("LICENSE lies outside of ")
        (snapshot / "LICENSE").unlink()


def test_modules_outside_the_folder_are_refused(folder, unloaded, tmp_path):
    private(tmp_path, "secret.py", b"x = 1\n")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoModel"] = f"{tmp_path / 'home' / 'secret'}.Model"
    (folder / "config.json").write_text(json.dumps(config))
    assert "secret.py lies outside of " in fault(folder)


# --- Texts ------------------------------------------------------------------------------------------------------------


def write_text_into(folder, name, text):
    """Put a text where such a file holds free text."""
    path = folder / name
    if name == "model.safetensors":
        save_file({"a": np.zeros(1, np.float32)}, path, metadata={"note": text})
    elif name.endswith(".json"):
        content = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**content, "note": {"deep": [text]}}, ensure_ascii=True))
    else:
        path.write_text(f"{path.read_text() if path.exists() else ''}\n# {text}\n", encoding="utf-8")


PLACES_OF_TEXT = [
    "README.md",
    "config.json",
    "tokenizer_config.json",
    "facts.json",
    "model.safetensors",
    "a.svg",
]


@pytest.mark.parametrize("name", PLACES_OF_TEXT)
def test_tokens_are_found_and_redacted(folder, unloaded, name):
    write_text_into(folder, name, f"login {TOKEN} please")
    found = fault(folder)
    assert found.startswith(name)
    assert "access token" in found
    assert TOKEN not in found


#: By kind, texts that hold a secret. They are put together here, so that no file of the repository has one.
MANY = "aB3dE5fG7h" * 6
PLANTED = {
    "a private key": [
        *(f"-----BEGIN {kind}PRIVATE KEY-----" for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")),
        *("-----BEGIN PGP PRIVATE KEY BLOCK-----", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"),
        "PuTTY-User-Key-File-3: ssh-ed25519",
    ],
    "an access token of the Hub": [
        *(
            TOKEN,
            f"my_{TOKEN}",
            f"x{TOKEN}y",
            f"hf_oauth_{MANY}",
            f"api_org_{MANY[:34]}",
            f"https://hf.co/?token={TOKEN}",
        ),
        *(f'"{TOKEN[:9]}" + "{TOKEN[9:]}"', f"'{TOKEN[:3]}' '{TOKEN[3:]}'", f'"{TOKEN[:9]}"\n    f"{TOKEN[9:]}"'),
        f'a = "{TOKEN[:9]}" + \\\n  "{TOKEN[9:]}"',
    ],
    "an access key of AWS": [f"id={'AKIA'}IOSFODNN7EXAMPLE", f"x{'ASIA'}ABCDEFGH12345678,"],
    "a secret key of AWS": [
        f"aws_secret_access_key = {'wJalrXUtnFEMI/K7MDENG'}/bPxRfiCYEXAMPLEKEY",
        f"AWS_SECRET_ACCESS_KEY={MANY[:40]}",
        f"secretAccessKey: '{MANY[:40]}'",
    ],
    "a token of GitHub": [*(f"gh{kind}_{MANY[:36]}" for kind in "opsur"), f"github_pat_{MANY[:22]}_{MANY[:59]}"],
    "a key of OpenAI or Anthropic": [*(f"sk-{kind}{MANY[:48]}" for kind in ("", "proj-", "ant-api03-"))],
    "a token of Slack": [f"xox{kind}-123456789012-{MANY[:12]}" for kind in "abprs"],
    "a key of Google": [f"key={'AIza'}{MANY[:35]}"],
    "a password in a URL": [
        *("https://ann:secret@example.org/x", "postgres://ann:s3cr3t@localhost:5432/db", "redis://:secret@127.0.0.1"),
        f"https://user:{MANY}@example.org",
    ],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in PLANTED.items() for text in texts], ids=lambda value: value[:24]
)
def test_secrets_of_each_form_are_found(tmp_path, kind, text):
    (tmp_path / "README.md").write_text(f"one\ntwo {text} three\nfour\n", encoding="utf-8")
    first, *others = faults_of_text(read_text(tmp_path, "README.md"), [])
    assert first.startswith(f"README.md, line 2: contains {kind} (")
    assert first.endswith(".")
    # No more than the first few characters are shown.
    shown = first.partition(f"{kind} (")[2].partition("…)")[0]
    assert 0 < len(shown) <= 4
    assert len(others) <= 1


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("form", ["value", "key", "escaped", "one line", "list"])
def test_secrets_in_json_are_found(tmp_path, kind, form):
    text = PLANTED[kind][0]
    if kind == "a secret key of AWS":
        name, text = "AWS_SECRET_ACCESS_KEY", MANY[:40]
        content = {name: text} if form != "list" else [f"{name}={text}"]
    else:
        content = {text: 1} if form == "key" else [1, text] if form == "list" else {"a": {"b": text}}
    dumped = json.dumps(content, indent=None if form == "one line" else 1)
    if form == "escaped":
        dumped = dumped.replace(text[:2], "".join(f"\\u{ord(letter):04x}" for letter in text[:2])).replace("/", "\\/")
    (tmp_path / "config.json").write_text(dumped)
    assert [found for _, found, _ in secrets_in(read_text(tmp_path, "config.json").lines)] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        *("SLOVAKIA ENGLAND", "ASIAPACIFICCHAMPIONSHIPS", "risk-averse and task-oriented-classification-of-words"),
        *("https://user:$TOKEN@example.org", "https://user:{password}@example.org", "https://user:<password>@host"),
        *("https://example.org:8080/@ann", "https://example.org/a:b@c", "mailto:ann@example.org", "http://***:***@x"),
        *("hf_hub_download and hf_transfer", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "sk-learn"),
        *("xoxo-xoxo", f"sha256: {'0123456789abcdef' * 4}", "ghp_short", "aws_secret_access_key = ..."),
        '["hf_", "internationalization", "SLOVAKIA", "AKIA", "ENGLANDANDWALES12"]',
    ],
)
@pytest.mark.parametrize("name", ["README.md", "config.json"])
def test_strings_similar_to_secrets_are_allowed(tmp_path, name, text):
    (tmp_path / name).write_text(text if name == "README.md" or text.startswith("[") else json.dumps([text, text]))
    assert list(secrets_in(read_text(tmp_path, name).lines)) == []


def test_no_file_of_the_package_is_reported_as_a_secret():
    folders = [REPOSITORY / name for name in ("model_cards", "hf_xorner", "scripts")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(files) > 200
    for path in [*files, REPOSITORY / "README.md"]:
        assert list(secrets_in(read_text(path.parent, path.name).lines)) == [], path


def test_secrets_in_utf_16_are_found(tmp_path):
    (tmp_path / "LICENSE").write_bytes(f"one\n{TOKEN}\n".encode("utf-16"))
    ((line, kind, _),) = secrets_in(read_text(tmp_path, "LICENSE").lines)
    assert (line, kind) == (2, "an access token of the Hub")


@pytest.mark.parametrize("name", PLACES_OF_TEXT)
@pytest.mark.parametrize("place", ["/home/ann/x", "here", r"C:\Users\ann", "/tmp/run-3/out"])
def test_local_paths_are_found(folder, unloaded, name, place):
    write_text_into(folder, name, f"see {folder if place == 'here' else place} now")
    found = fault(folder)
    assert found.startswith(name)
    assert "path of one machine" in found


def test_any_home_folder_is_found(folder, unloaded, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/unusual/place/of/ann"))
    write_text_into(folder, "config.json", "/unusual/place/of/ann/corpus")
    assert "/unusual/place/of/ann is a path" in fault(folder)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/home/ann/x.html",
        "runs/model and ./tmp/x, or ~/models",
        "hf_short",
        "and/or /tmp and /home",
        "huggingface.co/Users/guide",
    ],
)
def test_strings_similar_to_local_paths_are_allowed(folder, unloaded, text):
    write_text_into(folder, "README.md", text)
    write_text_into(folder, "facts.json", text)
    assert faults(folder) == []


def test_errors_include_line_numbers(folder):
    (folder / "README.md").write_text(f"{CARD}one\ntwo {TOKEN}\n")
    (found,) = faults_of_text(read_text(folder, "README.md"), [])
    assert "README.md, line 8:" in found


SENTENCE = "The old ferry between Lindow and Averill doesn't sail on Sundays , says Captain Ó'Mara .".split()


@pytest.mark.parametrize(
    "written",
    [
        " ".join(SENTENCE),
        "the old ferry between Lindow and Averill doesn't sail\non Sundays, says Captain Ó'Mara.",
        "…THE OLD FERRY BETWEEN LINDOW AND AVERILL DOES N'T SAIL ON SUNDAYS , SAYS CAPTAIN Ó'MARA!",
        "\n".join(SENTENCE),
    ],
)
@pytest.mark.parametrize("name", ["README.md", "facts.json"])
def test_sentences_of_the_corpus_are_found(folder, unloaded, name, written):
    write_text_into(folder, name, written)
    others = [["A", "b"], ["of", "eight", "words", "there", "is", "none", "such", "here"]]
    assert f"{name} contains a sentence of the corpus (The old ferry …)" in fault(folder, sentences=[*others, SENTENCE])
    assert faults(folder, sentences=others) == []


def test_seven_words_of_a_sentence_are_allowed(folder):
    text = read_text(folder, "README.md")._replace(passages=[(1, "he said that he would come on Monday .")])
    assert sentences_in([text], ["he said that he would come on .".split()]) == []
    assert sentences_in([text], ["he said that he would come on Monday .".split()]) != []
    assert sentences_in([text], ["a b c d e f g h".split()]) == []
    assert sentences_in([text._replace(passages=[(1, "A b c: d e f g h")])], ["a b c d e f g h".split()]) != []


def test_sentence_search_matches_brute_force():
    """The look-up by first words finds the same sentences as a search for each."""
    generator = np.random.default_rng(0)
    words = ["a", "bb", "ccc", "dddd"]
    corpus = [[words[place] for place in generator.integers(4, size=generator.integers(8, 12))] for _ in range(300)]
    held = "".join(words[place] for place in generator.integers(4, size=2000))
    from hf_xorner.hub.checks import Text

    found = [bool(sentences_in([Text("a", [(0, held)])], [sentence])) for sentence in corpus]
    assert found == ["".join(sentence) in held for sentence in corpus]
    assert 0 < sum(found) < 300


def test_corpus_words_in_the_vocabulary_are_allowed(tmp_path, unloaded):
    from hf_xorner import WordCharTokenizer

    tokenizer = WordCharTokenizer.from_corpus([SENTENCE], max_word_chars=10)
    build_model("cross-bilstm-cnn", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert faults(tmp_path, card=False, sentences=[SENTENCE]) == []


def test_the_corpus_is_loaded_from_the_facts(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_XORNER_CORPORA", raising=False)
    facts = folder / "facts.json"
    assert list(sentences_of(folder)) == []
    for named in ("xor", "conll2003", "owner/name", 3, None):
        facts.write_text(json.dumps({"data": {"source": named}}))
        assert list(sentences_of(folder)) == []
    corpus = tmp_path / "mine.conll"
    corpus.write_text("".join(f"{word}\tO\n" for word in SENTENCE))
    facts.write_text(json.dumps({"data": {"source": str(corpus)}}))
    assert [list(words) for words in sentences_of(folder)] == [SENTENCE]
    with pytest.raises(ValueError, match="no such file"):
        list(sentences_of(folder, dataset="nowhere.conll"))


# --- All together -----------------------------------------------------------------------------------------------------


def test_all_faults_are_reported_together(folder, unloaded):
    write_text_into(folder, "config.json", "/home/ann/x")
    write_text_into(folder, "LICENSE", TOKEN)
    (folder / "README.md").unlink()
    found = faults(folder, max_file_mb=0.001)
    for complaint in ("README.md", "access token", "path of one machine", "--max_file_mb"):
        assert sum(complaint in one for one in found) >= 1
    assert all(one.endswith(".") for one in found)


def test_widget_sentences_of_the_card_are_tagged(folder, unloaded):
    check_folder(folder)
    (folder / "README.md").write_text("---\nlicense: mit\nwidget: 3\n---\n")
    check_folder(folder)
    assert unloaded[0][1] == ["Ann met Zeus"]
    assert "Zorvan Quellmar" in unloaded[1][1][0]


def test_the_model_loads_without_the_package(folder):
    """In a new process, with only the published files."""
    (tagged,) = check_folder(folder).tagged
    assert tagged.sentence == "Ann met Zeus"
    assert all(0 <= start < end <= len("Ann met Zeus") for _, start, end in tagged.entities)


def test_a_model_that_does_not_load_without_the_package_is_refused(folder):
    (folder / "tokenizer.json").write_text("{}")
    assert "does not load in a process without this package" in fault(folder)


@pytest.mark.slow
def test_nan_scores_are_refused(tmp_path, tokenizer):
    model = build_model("cross-bilstm-cnn", tokenizer)
    with torch.no_grad():
        model.classifier.bias.fill_(float("nan"))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert "not finite numbers" in fault(tmp_path, card=False)
