"""`gap-fuse kernels schema`: the JSON schema of a kernel.yaml."""

from __future__ import annotations

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON schema of a kernel.yaml, for editors: `# yaml-language-server: $schema=kernel.schema.json`."""
    from fusion_engine.kernels.file_model import kernel_schema

    click.echo(json.dumps(kernel_schema(), indent=2))
