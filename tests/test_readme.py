"""The Python examples of the README and the documentation run, and print the output that is shown."""

import os
import re
from pathlib import Path

import pytest
from conftest import REPOSITORY
from processes import run_python

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCS = REPOSITORY / "docs"
#: By their paths below docs/.
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
PAGES["README.md"] = README
#: Pages that docs/hooks.py makes.
GENERATED = (DOCS / "cli.md", DOCS / "recipes.md")
EXAMPLES = [
    pytest.param(*example, id=f"{name}-{number}")
    for name, text in PAGES.items()
    for number, example in enumerate(re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, flags=re.DOTALL))
]


def test_every_python_block_is_followed_by_its_output():
    assert len(EXAMPLES) == sum(text.count("```python") for text in PAGES.values()) >= 6


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_examples_print_the_documented_output(code, expected, default_run):
    for package in re.findall(r"^(?:import|from) (spacy|ray|pyspark|fastapi)\b", code, flags=re.MULTILINE):
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
        folder = REPOSITORY if name == "README.md" else (DOCS / name).parent
        for target in re.findall(r"\]\(([^)#:]+)[)#]", text):
            path = Path(os.path.normpath(folder / target))
            assert path.exists() or path in GENERATED, f"{name}: {target} does not exist"


def test_ci_runs_the_two_commands():
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    first, second = re.findall(r"```bash\n(pip install .*?)\n```", README)
    assert first in script
    assert second in script
