"""The README's Python examples run, and print the output that the README shows."""

import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_is_followed_by_what_it_prints():
    assert len(EXAMPLES) == README.count("```python") == 5


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_readme_says(number, default_run):
    folder, _ = default_run
    shelf = folder / "model_cards"
    if not shelf.exists():
        shelf.symlink_to(REPOSITORY / "model_cards")
    code, expected = EXAMPLES[number]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == expected


def test_the_two_commands_are_those_that_ci_runs():
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    first, second = re.findall(r"```bash\n(pip install .*?)\n```", README)
    assert first in script
    assert second in script
