"""``axformer push`` and ``axformer log``: a result goes to the model hub, and experiment trackers are told of it."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from axformer.cli.failing import failing
from axformer.errors import ConfigError

ResultArgument = Annotated[Path, typer.Argument(help="The directory of a result.", metavar="RESULT")]


def push(
    result: ResultArgument,
    repository: Annotated[
        str, typer.Argument(help="hf://organisation/name, perhaps with @branch.", metavar="REPOSITORY")
    ],
    public: Annotated[
        bool, typer.Option("--public", help="Make a repository that is missing for everybody, not for its owner alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Put a result into a repository of the model hub, in one commit, and print its address. The token is HF_TOKEN, or that of
    hf auth login."""
    with failing():
        from axformer.pushing import push as put

        address = put(result, repository, private=not public)
    print(json.dumps({"address": address}) if as_json else address)  # noqa: T201 - this is what was asked for


def log(
    result: ResultArgument,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Tell MLflow; needs axformer[mlflow].")] = False,
    uri: Annotated[
        str | None, typer.Option(help="MLflow's tracking server or store; by default MLFLOW_TRACKING_URI.")
    ] = None,
    wandb: Annotated[bool, typer.Option("--wandb", help="Tell Weights & Biases; needs axformer[wandb].")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """Tell an experiment tracker of a result: settings, figures along the path, advice, certificate, card and report."""
    with failing():
        if not mlflow and not wandb:
            raise ConfigError("nobody is to be told; give --mlflow, --wandb or both")
        if uri is not None and not mlflow:
            raise ConfigError(f"--uri {uri} is MLflow's; give --mlflow too")
        from axformer.tracking import to_mlflow, to_wandb, tracked

        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # a person waits; 7 of them last four minutes
        record, runs = tracked(result), dict[str, str]()
        if mlflow:
            runs["MLflow"] = to_mlflow(record, uri)
        if wandb:
            runs["W&B"] = to_wandb(record)
    told = [json.dumps(runs)] if as_json else [f"{name} run {run}" for name, run in runs.items()]
    print(*told, sep="\n")  # noqa: T201 - this is what was asked for
