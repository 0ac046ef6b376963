"""Write the tables of docs/results.md and README.md again from model_cards/results.json; `--check` only compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hf_xorner.papers.results import headline_table, read_results, results_page

ROOT = Path(__file__).resolve().parents[1]
#: The results in README.md.
HEADLINES = {
    "li2020/table1/cross": "Cross-BiLSTM-CNN",
    "wnut17/contextual": "Cross-BiLSTM-CNN over an encoder's states",
    "ma2016/table3/blstm-cnns-crf": "BLSTM-CNNs-CRF",
    "chen2019/table2/grn": "GRN",
    "chen2019/table2/grn-context": "GRN over an encoder's states",
}


def main(check: bool) -> None:
    """Write the pages, or exit with a sentence if they differ."""
    rows = read_results(ROOT / "model_cards" / "results.json")
    tables = {"docs/results.md": results_page(rows), "README.md": headline_table(rows, HEADLINES)}
    for name, table in tables.items():
        page = ROOT / name
        old = page.read_text(encoding="utf-8")
        # A function, since backslashes in a replacement string are escapes.
        block = r"(?s)(?<=<!-- results -->\n).*?(?=<!-- end of results -->)"
        new = re.sub(block, lambda _, table=table: f"{table}\n", old)
        if check and new != old:
            sys.exit(f"{name} differs from model_cards/results.json; run: python scripts/results_page.py")
        page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
