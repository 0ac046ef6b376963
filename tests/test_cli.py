"""The `hf-xorner` command: its help, its check of option names, and every example of the documentation."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import transformers
from conftest import REPOSITORY
from helpers import posix
from processes import run_python
from tiny_encoders import save_encoder

from hf_xorner.cli import main
from hf_xorner.cli.help import COMMANDS, check_options, generate, help_of
from hf_xorner.options import option, read_options

HELP_FILE = REPOSITORY / "hf_xorner" / "cli" / "help.json"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]

#: Parts of examples that are not run here.
NOT_RUN = [
    *("train.py", "--model_type att-bilstm-cnn --decoder crf"),  # as test_readme and the first example of train
    *("xargs", "| hf-xorner tag"),  # as test_tag_script
    # They need hours, or minutes; tests/training and the tests of the scripts run them on a few sentences.
    *("train ma2016", "reproduce ma2016", "english.py", "few_labels.py", "benchmark", "$part", "new_corpus/"),
    *("accelerate", "torchrun", "--nnodes", "--seeds", "--context", "--more_data", "--teacher"),
    # They need what is not here: models, corpora, vectors, packages of npm, the Hub, other packages.
    *("--min_precision", "another_tagger", "analyze", "card runs/seed-1", "conll2003", "glove.6B.zip", "--to web"),
    *("--repo_id me/my-tagger", "hf auth", "hf upload", "pip install", "python -c", "app.py"),
]


def documented_commands():
    """Return the commands in bash blocks of the documentation and in examples of the help texts, with their sources."""
    commands = {}
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in re.sub(r"python -c '[^']*'", "python -c", block).splitlines():
                commands.setdefault(line.partition("  #")[0].strip(), page.name)
    for command in COMMANDS:
        examples = help_of(command, ["--help"]).partition("examples:\n")[2].partition("\n\n")[0]
        for line in examples.splitlines():
            commands.setdefault(line.strip(), f"help of {command}")
    return {line: source for line, source in commands.items() if line and not line.startswith("#")}


DOCUMENTED = documented_commands()


def subcommand(line):
    """Return the subcommand and the options of a documented command; None for other programs."""
    words = shlex.split(line.rpartition("|")[2] if "hf-xorner" in line.rpartition("|")[2] else line.partition("|")[0])
    for index, word in enumerate(words):
        if word == "hf-xorner":
            return words[index + 1], words[index + 2 :]
        if word == "scripts/train.py":
            return "train", words[index + 1 :]
    return None


@pytest.mark.skipif(
    not transformers.__version__.startswith("5.24."), reason="help.json has the options of transformers 5.24's Trainer"
)
def test_help_file_matches_the_parsers():
    assert json.loads(HELP_FILE.read_text(encoding="utf-8")) == generate(), "run `make help`"


def test_every_command_is_documented_by_full_names_of_options():
    assert {named[0] for line in DOCUMENTED if (named := subcommand(line))} == set(COMMANDS)
    for line, source in DOCUMENTED.items():
        if named := subcommand(line):
            command, words = named
            # `data CORPUS` is `data stats CORPUS`.
            assert check_options(command, words)[-len(words) :] == words, f"{source}: {line}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("trian", "unknown command 'trian'; did you mean 'train'"),
        ("train --epcohs 3", "unknown option --epcohs; did you mean --epochs"),
        ("tag x --zzzz", "unknown option --zzzz; hf-xorner tag --help-all"),
        ("vectors convert x --ouput y", "did you mean --output"),
        ("data convrt x", "unknown command 'convrt'; did you mean 'convert'"),
        ("data stats --json x", "dataset"),
        ("tag x --model m --batch_size many", "--batch_size"),
    ],
)
def test_unknown_names_are_reported_with_a_suggestion(capsys, words, sentence):
    with pytest.raises(SystemExit) as stop:
        main(None, words.split())
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_short_and_hyphenated_names_are_expanded():
    words = ["--epochs=3", "--lr", "0.1", "--per-device-eval-batch-size", "4", "--data", "my-corpus/--x"]
    assert check_options("train", words) == [
        *("--num_train_epochs=3", "--learning_rate", "0.1", "--per_device_eval_batch_size", "4"),
        *("--dataset", "my-corpus/--x"),
    ]


def test_switches_stand_alone_or_have_a_truth_value():
    @dataclass
    class Options:
        source: str = option(positional=True)
        overwrite: bool = option(False)
        sizes: list[int] = option([1])

    for words, expected in (
        (["--overwrite", "a"], (True, [1])),
        (["a", "--overwrite", "false", "--sizes", "2", "3"], (False, [2, 3])),
        (["--overwrite", "true", "a", "--sizes"], (True, [])),
    ):
        options = read_options(Options, words)
        assert (options.source, (options.overwrite, options.sizes)) == ("a", expected)


def test_positional_arguments_may_have_names_and_any_position():
    @dataclass
    class Options:
        model: str = option(positional=True)
        sources: list[str] = option([], positional=True, aliases=("--files",))
        size: int = option(1)

    for words in ("m a b", "--size 1 m a b", "--model m a b", "a b --model=m", "m --files a b"):
        options = read_options(Options, words.split())
        assert (options.model, options.sources) == ("m", ["a", "b"]), words


def test_what_needs_no_torch_does_not_import_it(tmp_path):
    (tmp_path / "corpus.conll").write_text("Ann B-PER\nsaw O\n")
    code = (
        "import sys\nfrom hf_xorner.cli import main\ntry:\n    main()\nexcept SystemExit as stop:\n"
        "    print(stop.code)\nprint(*sorted({'torch', 'transformers'} & {*sys.modules}))\n"
    )
    (tmp_path / "hf-xorner").write_text(code)
    for words, end, fact in (
        (["train", "--epcohs", "3"], ["2"], "--epochs"),
        (["export", "my_tagger"], ["2"], "--output is missing"),
        (["data", "corpus.conll"], ["transformers"], "read as conll"),
    ):
        command = [sys.executable, tmp_path / "hf-xorner", *words]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert result.stdout.split()[-1:] == end and fact in result.stderr, result


@pytest.fixture(scope="module")
def workplace(default_run, tmp_path_factory):
    """A folder with the files that the documentation names."""
    folder = tmp_path_factory.mktemp("documented")
    trained, _ = default_run
    shutil.copytree(trained / "runs" / "xor-cross-bilstm-cnn", folder / "my_tagger")
    open_model = "model_cards/english-ner-open"
    shutil.copytree(REPOSITORY / open_model, folder / open_model)
    text = "Ann B-PER\nSmith I-PER\nmet O\nZeus B-GOD\n\nwe O\nsaw O\nOslo B-LOC\n\n" * 4
    for corpus in (folder / "my_corpus", folder / "corpora" / "wnut17"):
        corpus.mkdir(parents=True)
        for split in ("train", "dev", "test"):
            (corpus / f"{split}.conll").write_text(text.replace(" ", "\t"), encoding="utf-8")
    (folder / "corpus.conll.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "texts").mkdir()
    for file in (folder / "texts.txt", folder / "texts" / "a.txt"):
        file.write_text("Ann met Zeus .\nnobody\n", encoding="utf-8")
    tasks = [
        {"data": {"text": text}, "annotations": [{"result": [{"value": {"start": 0, "end": 3, "labels": ["PER"]}}]}]}
        for text in (f"Ann met Zeus {number} times ." for number in range(30))
    ]
    (folder / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    (folder / "reviews.csv").write_text("id,review\n1,Ann met Zeus .\n", encoding="utf-8")
    rows = (
        f"{word} {' '.join(map(str, np.arange(100) / (100 + index)))}\n" for index, word in enumerate(("ann", "zeus"))
    )
    (folder / "glove.6B.100d.txt").write_text("".join(rows), encoding="utf-8")
    predictions = "Ann\tB-PER\tB-PER\nmet\tO\tO\nZeus\tB-GOD\tO\n\n"
    for name in ("any_system.tsv", "another_system.tsv"):
        (folder / name).write_text(predictions, encoding="utf-8")
    save_encoder(folder / "some" / "encoder")
    return folder


RUN = {line: found for line in DOCUMENTED if (found := subcommand(line)) and not any(part in line for part in NOT_RUN)}


# One test, as some examples use what earlier ones wrote.
@pytest.mark.slow
def test_documented_commands_run(workplace, monkeypatch, capsys):
    assert len(RUN) >= 12
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("HF_XORNER_CORPORA", "corpora")
    for line, (command, words) in RUN.items():
        small = {
            "train": ["--num_train_epochs", "1", "--disable_tqdm", "true", "--overwrite"],
            "vectors": ["--dim", "4"],
        }
        more = small.get(command, []) if command == "train" or "distill" in words else []
        try:
            main(command, [*words, *more])
        except SystemExit as stop:
            assert not stop.code, f"{line}: {capsys.readouterr().err}"


@pytest.mark.slow
def test_no_progress_bars_are_written_to_a_file_but_to_a_terminal(workplace, monkeypatch, capsys):
    monkeypatch.chdir(workplace)
    small = "train my_corpus --model_type bilstm-cnn --num_train_epochs 2 --use_cpu --output_dir"
    evaluation = "evaluate --model my_tagger --dataset my_corpus --resamples 0"
    code = "import sys\nfrom hf_xorner.cli import main\nfor line in sys.argv[1:]: main(None, line.split())"
    done = run_python(["-c", code, f"{small} small", evaluation], cwd=workplace, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert not any(sign in done.stdout + done.stderr for sign in ("\r", "it/s", "examples/s", "Loading weights"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    transformers.logging.enable_progress_bar()
    for line, sign in ((f"{small} other", "2/2"), (evaluation, "Loading weights")):
        main(None, line.split())
        assert sign in capsys.readouterr().err


@posix
def test_full_and_closed_outputs_end_in_one_sentence():
    for line, code, sentence in (("--version > /dev/full", 1, "No space left"), ("train --help-all | true", 0, "")):
        words = ["bash", "-c", f"{shlex.quote(sys.executable)} -m hf_xorner {line}"]
        done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == code
        assert sentence in done.stderr and len(done.stderr.splitlines()) == bool(sentence) and not done.stdout


@posix
def test_no_file_takes_the_place_of_a_closed_standard_stream():
    code = "import os; from hf_xorner.cli import main; main('--version', []); os._exit(os.dup(0))"
    command = f"exec {shlex.quote(sys.executable)} -c \"import sys; sys.argv = ['hf-xorner']; {code}\" <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], env=ENVIRONMENT).returncode == 3


def test_commands_to_a_terminal_in_labels_and_words_are_shown_as_text(script, tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "train.txt").write_text("Ann B-A\x1b]0;title\x07B\nleft O\n\n")
    assert "\x1b" in script("data", "stats", "x")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, output, _ = script("data", "stats", "x")
    assert "A\\x1b]0;title\\x07B" in output and "\x1b" not in output
    _, _, errors = script("tag", "a\x1b[2Jb c", "--model", "no\x1b[2J")
    assert "no\\x1b[2J" in errors and "\x1b" not in errors
