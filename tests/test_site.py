"""The documentation site: it builds without warnings, loads nothing from other hosts."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import REPOSITORY
from processes import run_python

#: Attributes by which elements load something.
LOADED = {
    **dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src"),
    "link": "href",
    "object": "data",
}


class Page(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        address = values.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and values.get("rel") in ("canonical", "prev", "next", "alternate")):
            self.loads.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site, once for all tests, as a build takes over 2 s."""
    pytest.importorskip("material", reason="mkdocs-material is not installed (pip install '.[docs]')")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed (pip install '.[docs]')")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed (pip install '.[docs]')")
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    result = run_python(command, cwd=REPOSITORY)
    assert result.returncode == 0, result.stderr[-3000:] + result.stdout[-3000:]
    return folder


@pytest.mark.slow  # .ci/run builds the site with --strict, too
def test_the_site_builds_without_warnings_and_loads_nothing_from_other_hosts(site):
    """A strict build also fails for links and anchors that do not exist."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not [address for address in Page(text).loads if re.match(r"(\w+:)?//", address)], path
        # With these, the theme's script requests statistics from GitHub, or a program that draws.
        assert 'data-md-component="source"' not in text and 'class="mermaid"' not in text, path
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path
    assert "<math" in (site / "concepts" / "grn" / "index.html").read_text(encoding="utf-8")
