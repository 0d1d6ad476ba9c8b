"""``axformer grid``: run a grid of jobs on the service."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from axformer.cli.group import follow_group
from axformer.cli.hub_token import HubTokenOption, hub_token_of
from axformer.cli.remote import JsonOption, notes, output, print_json, service
from axformer.cli.upload import sent
from axformer.client import Client, Upload
from axformer.client.references import is_reference
from axformer.config import Preset, check_setting_name, usual_preset
from axformer.config.goals import config_of_wish
from axformer.errors import ConfigError, DataError
from axformer.wire.heads import parse_head


class _Part(BaseModel):
    """A part of a grid file; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Set(_Part):
    name: str
    checkpoints: list[str] = Field(min_length=1)
    validation: str
    test: str | None = None
    calibrate: str | None = None
    train: str | None = None
    columns: dict[str, str] | None = None
    head: str | None = None
    """As ``--head`` of ``axformer prune``."""


class _Setting(_Part):
    name: str
    goal: str | None = None
    preset: Preset | None = None
    config: dict[str, Any] = {}
    finetune: dict[str, Any] | None = None


class _Grid(_Part):
    """The content of a grid file."""

    name: str
    sets: list[_Set] = Field(min_length=1)
    settings: list[_Setting] = Field(min_length=1)
    seeds: list[int] = []
    forms: list[str] | None = None
    priority: int = 0
    device: str = "any"
    labels: dict[str, str] = {}


def grid(
    file: Annotated[Path, typer.Argument(help="The grid: a .toml or .json file; paths in it are relative to it.")],
    hub_token: HubTokenOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Wait until all jobs have ended, and show the table.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Queue a grid of jobs: each checkpoint of each set with each setting and seed. Local paths are uploaded first, each
    once."""
    with service() as client:
        wanted = _read(file)
        for setting in wanted.settings:  # errors are reported before anything is sent
            _check(setting)
        for data_set in wanted.sets:
            _head(data_set)
        sources = {
            source
            for each in wanted.sets
            for source in (*each.checkpoints, each.validation, each.test, each.calibrate, each.train)
            if source
        }
        token = hub_token_of(hub_token, sources)
        group = client.submit_group(
            wanted.name,
            sets=_named(client, wanted, file.parent),
            settings=[setting.model_dump(mode="json", exclude_none=True) for setting in wanted.settings],
            **wanted.model_dump(include={"seeds", "forms", "priority", "device", "labels"}),
            hub_token=token,
        )
        if watch:
            if not as_json:
                output().print(group.id, soft_wrap=True)
            follow_group(client, group.id, as_json=as_json)
        elif as_json:
            print_json(group)
        else:
            output().print(group.id, soft_wrap=True)
            notes().print(f"{len(group.cells)} jobs are queued. Look at them with: axformer group {group.id}")


def _check(setting: _Setting) -> None:
    if setting.goal is not None and setting.preset is not None:
        raise ConfigError(f"setting '{setting.name}': a goal has its own preset; leave the goal or the preset out")
    preset, _ = config_of_wish(setting.goal, setting.preset or usual_preset(setting.config), setting.config)
    check_setting_name(setting.name, preset)


def _head(data_set: _Set) -> dict[str, Any] | None:
    return None if data_set.head is None else parse_head(data_set.head).model_dump(mode="json")


def _read(file: Path) -> _Grid:
    try:
        text = file.read_text(encoding="utf-8")
        return _Grid.model_validate(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        raise ConfigError(f"grid file '{file}': {field}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"grid file '{file}' cannot be read as .toml or .json: {error}") from None


def _named(client: Client, wanted: _Grid, directory: Path) -> list[dict[str, Any]]:
    """The sets, with local files uploaded."""

    @cache
    def reference(text: str) -> str | Upload:
        if is_reference(text):
            return text
        path = directory / text
        if not path.exists():
            raise DataError(f"'{path}' does not exist here; give a path from where the grid file lies, or a reference")
        return sent(client, path)

    named = []
    for data_set in wanted.sets:
        data = {
            "validation": reference(data_set.validation),
            "test": None if data_set.test is None else reference(data_set.test),
            "calibrate": None if data_set.calibrate is None else reference(data_set.calibrate),
            "train": None if data_set.train is None else reference(data_set.train),
        }
        checkpoints = [reference(each) for each in data_set.checkpoints]
        about = {"name": data_set.name, "columns": data_set.columns, "head": _head(data_set)}
        named.append({**about, "checkpoints": checkpoints, **data})
    return named
