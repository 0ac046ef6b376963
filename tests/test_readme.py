"""The Python examples of the README and the documentation run, and print the output that is shown."""

import re

import pytest
from conftest import REPOSITORY
from processes import run_python

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").glob("*.md")}
PAGES["README.md"] = README
EXAMPLES = [
    pytest.param(*example, id=f"{name}-{number}")
    for name, text in PAGES.items()
    for number, example in enumerate(re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, flags=re.DOTALL))
]


def test_every_python_block_is_followed_by_its_output():
    assert len(EXAMPLES) == sum(text.count("```python") for text in PAGES.values()) >= 6


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_examples_print_the_documented_output(code, expected, default_run):
    for package in re.findall(r"^(?:import|from) (spacy|ray|pyspark)\b", code, flags=re.MULTILINE):
        pytest.importorskip(package, reason=f"{package} is not installed")
    folder, _ = default_run
    cards = folder / "model_cards"
    if not cards.exists():
        cards.symlink_to(REPOSITORY / "model_cards")
    result = run_python(["-c", code], cwd=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    # Training also prints a line with times after each epoch.
    assert re.sub(r"^epoch .*\n", "", result.stdout, flags=re.MULTILINE) == expected


def test_links_between_pages_exist():
    for name, text in PAGES.items():
        base = REPOSITORY if name == "README.md" else REPOSITORY / "docs"
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            generated = name != "README.md" and target == "cli.md"
            assert generated or (base / target).exists(), f"{name}: {target} does not exist"


def test_ci_runs_the_two_commands():
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    first, second = re.findall(r"```bash\n(pip install .*?)\n```", README)
    assert first in script
    assert second in script
