"""What an endpoint is to install beside a model: packages and their versions, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

#: A package of the index with its extras and versions: no option, address or folder.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w.,\s-]*\])?\s*(?:[<>=!~]=?=?[\w.,<>=!~*+\s-]*)?(?:;[^@]*)?")


def faults_of_requirements(path: Path) -> list[str]:
    """Return the lines of a file of requirements that name more than packages and their versions, each in a sentence.

    What they hold is not shown: it may be the password of an index.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    bare = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return [
        f"{path.name}, line {number}: is no package with versions; an endpoint is to install such alone, take it out."
        for number, line in enumerate(bare, 1)
        if line and not _REQUIREMENT.fullmatch(line)
    ]
