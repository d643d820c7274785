"""`gap-fuse rules schema`: the JSON schema of a rule file."""

from __future__ import annotations

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON schema of a rule file, for editors: `# yaml-language-server: $schema=rule.schema.json`."""
    from fusion_engine.language.file_model import rule_schema

    click.echo(json.dumps(rule_schema(), indent=2))
