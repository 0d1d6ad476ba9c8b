"""The images and the compose file, as far as they can be judged without a container engine.

Run here: hadolint on both Dockerfiles, the Compose Specification's schema, and what neither of them looks at. The images are
built and the services started by ``tests/containers``. A GPU in a container needs NVIDIA's container toolkit.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
DOCKERFILES = ("Dockerfile.api", "Dockerfile.worker")
SECRETS = {"POSTGRES_PASSWORD", "VALKEY_PASSWORD"}
OWN = ("migrate", "api", "worker", "worker-gpu")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return content


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Keyword and arguments of each instruction, continued lines joined, comments left out."""
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / dockerfile).read_text()).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if line.strip()]


def packages_of(group: str) -> set[str]:
    """Names of the packages in a dependency group and in the groups that it includes."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    names: set[str] = set()
    for entry in groups[group]:
        names |= packages_of(entry["include-group"]) if isinstance(entry, dict) else {re.split(r"[^\w.-]", entry)[0]}
    return names


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_hadolint_finds_nothing(dockerfile):
    hadolint = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([hadolint, "--no-color", ROOT / dockerfile], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_compose_file_follows_the_specification():
    command = [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    ran = subprocess.run([*command, ROOT / "docker-compose.yml"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_an_image_runs_as_an_ordinary_user_and_checks_its_health(dockerfile):
    steps = dict(instructions(dockerfile))
    assert steps["USER"] == "10001:10001"
    assert "HEALTHCHECK" in steps


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_what_an_image_copies_is_there_and_not_ignored(dockerfile):
    copies = [arguments.split()[:-1] for keyword, arguments in instructions(dockerfile) if keyword == "COPY"]
    sources = {name for names in copies if not names[0].startswith("--from") for name in names}
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert sources
    assert all((ROOT / name).exists() and f"!{name.split('/')[0]}" in ignore for name in sources)


def pins_of(file: Path) -> dict[str, str]:
    """Version of each package in a file of versions, without hashes and comments, by normalized name."""
    lines = [re.match(r"([\w.-]+)==(\S+)", line) for line in file.read_text().splitlines()]
    return {canonicalize_name(found[1]): found[2] for found in lines if found}


def needs_of(image: str) -> set[str]:
    """Names of the packages that an image asks for."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"] if image == "worker" else []
    return {canonicalize_name(name) for name in packages_of(image) | {Requirement(one).name for one in own}}


@pytest.mark.parametrize("image", ["api", "worker"])
def test_an_image_installs_what_is_pinned_with_hashes_and_nothing_else(image):
    installs = re.findall(r"pip install ([^&\n]*)", "\n".join(step for _, step in instructions(f"Dockerfile.{image}")))
    *others, last = [" ".join(words.split()) for words in installs]
    assert last.removeprefix("--no-deps ") == "--require-hashes --only-binary :all: --requirement requirements.txt"
    # The build of PyTorch without CUDA is another file of the same version.
    assert [words.split()[-2] for words in others] == (['"$torch";'] if image == "worker" else [])
    text = (ROOT / image / "requirements.txt").read_text()
    pin = r"[\w.-]+==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.fullmatch(f"({pin})+", text), "a line is no pin with hashes; make pins"


@pytest.mark.parametrize("image", ["api", "worker"])
def test_pins_with_hashes_are_those_that_are_tested_and_all_that_they_need(image):
    pinned, tested = pins_of(ROOT / image / "requirements.txt"), pins_of(ROOT / "constraints.txt")
    assert {name: version for name, version in pinned.items() if tested.get(name, version) != version} == {}
    assert needs_of(image) <= pinned.keys()
    for name in pinned.keys() & {canonicalize_name(one.name) for one in distributions()}:
        for need in map(Requirement, requires(name) or ()):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in pinned, f"{name} needs it; make pins"


def test_the_api_image_gets_neither_a_model_library_nor_a_parser_of_untrusted_tables():
    assert pins_of(ROOT / "api/requirements.txt").keys().isdisjoint({"torch", "transformers", "safetensors", "pyarrow"})


def test_a_list_of_parts_names_every_pin_with_its_hashes(tmp_path):
    program, bom = Path(sys.executable).with_name("cyclonedx-py"), tmp_path / "bom.json"
    command = [program, "requirements", ROOT / "api/requirements.txt", "--output-reproducible", "--output-file", bom]
    subprocess.run(command, check=True)
    parts = json.loads(bom.read_text())
    assert parts["bomFormat"] == "CycloneDX"
    versions = {canonicalize_name(part["name"]): part["version"] for part in parts["components"]}
    assert versions == pins_of(ROOT / "api/requirements.txt")
    assert all(part["externalReferences"][0]["hashes"] for part in parts["components"])


def test_every_name_in_the_compose_file_is_defined(compose):
    for name, service in compose["services"].items():
        assert set(service["networks"]) <= compose["networks"].keys(), name
        named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert named <= compose["volumes"].keys(), name
        assert service.get("depends_on", {}).keys() <= compose["services"].keys(), name
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file(), name


def test_a_service_waits_until_what_it_needs_can_serve_it(compose):
    services = compose["services"]
    for name in OWN:
        for needed, how in services[name]["depends_on"].items():
            once = services[needed].get("restart") == "no"
            assert how["condition"] == ("service_completed_successfully" if once else "service_healthy")
            assert once or "healthcheck" in services[needed] or "build" in services[needed]
    assert {"migrate", "postgres", "valkey"} == services["api"]["depends_on"].keys()
    assert {"migrate", "postgres", "valkey"} == services["worker"]["depends_on"].keys()


def test_one_worker_reserves_a_gpu_and_the_other_runs_anywhere(compose):
    on_cpu, on_gpu = compose["services"]["worker"], compose["services"]["worker-gpu"]
    assert (on_cpu["profiles"], on_gpu["profiles"]) == (["cpu"], ["gpu"])
    assert "deploy" not in on_cpu
    [device] = on_gpu["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def test_the_workers_temporary_files_are_on_a_disk(compose):
    settings = [arguments for keyword, arguments in instructions("Dockerfile.worker") if keyword == "ENV"]
    (directory,) = re.findall(r"TMPDIR=(\S+)", " ".join(settings))
    assert directory in {volume.partition(":")[2] for volume in compose["services"]["worker"]["volumes"]}
    assert directory not in compose["services"]["worker"]["tmpfs"]


def test_own_services_have_no_privileges(compose):
    for name in OWN:
        service = compose["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]


def test_only_the_api_is_reached_from_outside(compose):
    published = {name for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api"}
    assert compose["networks"]["data"]["internal"]


def test_no_secret_has_a_default(compose):
    text = (ROOT / "docker-compose.yml").read_text()
    used = dict(re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", text))
    handed_on = {name for name, value in compose["services"]["api"]["environment"].items() if value is None}
    lines = (ROOT / ".env.example").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    assert {*used, "COMPOSE_PROFILES"} == example.keys()
    assert handed_on == {found[1] for line in lines if (found := re.match(r"# ([A-Z_]+)=", line))}
    for name, rule in used.items():
        assert rule.startswith(":?" if name in SECRETS else ":-"), name
    assert all(example[name] == "" for name in SECRETS)
