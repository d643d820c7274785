"""`gap-fuse rules schema`: the JSON schemas of the files beside rules."""

from __future__ import annotations

import json

import click


@click.command(short_help="The JSON schema of a rule file, of fragments or of classes.")
@click.argument("file", type=click.Choice(["rule", "fragments", "classes"]), default="rule")
def schema(file: str) -> None:
    """Print the JSON schema of a rule file, of fragments.yaml or of classes.yaml, for editors: `# yaml-language-server:
    $schema=rule.schema.json`."""
    from fusion_engine.language.file_model import classes_schema, fragments_schema, rule_schema

    made = {"rule": rule_schema, "fragments": fragments_schema, "classes": classes_schema}
    click.echo(json.dumps(made[file](), indent=2))
