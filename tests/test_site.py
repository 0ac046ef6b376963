"""The documentation site: it builds without warnings, loads nothing from other hosts, and its links lead somewhere."""

import os
import re
import runpy
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
    """What a page loads, where it links to, its anchors, and the tags that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads, self.links, self.anchors, self.tags = [], [], set(), defaultdict(int)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags[tag] += 1
        self.anchors.add(given.get("id"))
        address = given.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and given.get("rel") in ("canonical", "prev", "next", "alternate")):
            self.loads.append(address)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site."""
    pytest.importorskip("material", reason="mkdocs-material is not installed (pip install '.[docs]')")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed (pip install '.[docs]')")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed (pip install '.[docs]')")
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    result = run_python(command, cwd=REPOSITORY)
    assert result.returncode == 0, result.stderr[-3000:] + result.stdout[-3000:]
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    """The pages by their files; the error page has absolute links, which depend on where the site is served."""
    files = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert len(files) > 25
    return {path: Page(path.read_text(encoding="utf-8")) for path in files}


def test_pages_load_nothing_from_other_hosts(site, pages):
    for path, page in pages.items():
        assert page.loads
        elsewhere = [address for address in page.loads if re.match(r"(\w+:)?//", address)]
        assert not elsewhere, f"{path}: {elsewhere}"
        text = path.read_text(encoding="utf-8")
        # With these, the theme's script requests statistics from GitHub, or a program that draws.
        assert 'data-md-component="source"' not in text and 'class="mermaid"' not in text, path
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_internal_links_and_anchors_exist(pages):
    for path, page in pages.items():
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path}: {address}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path}: {address}"


def test_equations_are_mathml_and_code_is_shown(site, pages):
    page = site / "concepts" / "grn" / "index.html"
    text = page.read_text(encoding="utf-8")
    assert pages[page].tags["math"] >= 6
    assert "arithmatex" not in text and "\\frac" not in text
    assert "modeling_grn.py#L" in text and "gated_sum" in text


def test_pictures_are_those_of_the_script():
    drawn = runpy.run_path(str(REPOSITORY / "scripts" / "diagrams.py"))["pictures"]()
    folder = REPOSITORY / "docs" / "pictures"
    written = {name: (folder / name).read_text(encoding="utf-8") for name in drawn}
    assert written == drawn, "run `make pictures`"
    assert all("<title>" in text for text in drawn.values())
