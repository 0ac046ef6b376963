"""A hook of MkDocs: generates the page of the command line from the help texts."""

from typing import Any

from mkdocs.structure.files import File, Files

from hf_xorner.cli.options import COMMANDS, help_of


def on_files(files: Files, config: Any) -> Files:
    """Add cli.md."""
    parts = ["# Command line", ""]
    for command, summary in COMMANDS.items():
        parts += [
            f"## hf-xorner {command}",
            "",
            summary,
            "",
            "```text",
            help_of(command, ["--help-all"]) or "",
            "```",
            "",
        ]
    files.append(File.generated(config, "cli.md", content="\n".join(parts)))
    return files
