"""The manifests in ``docs/kubernetes``, as far as they can be judged without a cluster.

Run here: the schemas of Kubernetes (kubernetes-validate), strictly, and what they do not look at. Not run here: a cluster.
"""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from store.setting_groups import StorageSettings
from store.settings import Settings

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "docs" / "kubernetes"
VERSION = "1.33"
"""The oldest that is still kept when this was written."""
OWN = ("axformer-api", "axformer-worker")


def documents() -> list[tuple[str, dict[str, Any]]]:
    kustomization = yaml.safe_load((PLACE / "kustomization.yaml").read_text())
    return [
        (f"{name}: {document['kind']} {document['metadata']['name']}", document)
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((PLACE / name).read_text())
    ]


DOCUMENTS = [pytest.param(document, id=name) for name, document in documents()]
WITH_PODS = [param for param in DOCUMENTS if param.values[0]["kind"] in ("Deployment", "Job")]


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = document["spec"]["template"]["spec"]
    return pod


def test_every_manifest_is_named() -> None:
    kustomization = yaml.safe_load((PLACE / "kustomization.yaml").read_text())
    there = {path.name for path in PLACE.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == there
    assert {image["name"] for image in kustomization["images"]} == set(OWN)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_manifest_follows_the_schema(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_the_schema_refuses_what_is_not_in_it() -> None:
    wrong = yaml.safe_load((PLACE / "migrate.yaml").read_text())
    wrong["spec"]["template"]["spec"]["containers"][0]["imagge"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_program_has_no_rights_limits_and_secrets_by_reference(document: dict[str, Any]) -> None:
    pod = pod_of(document)
    assert pod["securityContext"]["runAsUser"] == 10001  # as in the images
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["image"] in OWN
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert "memory" in container["resources"]["limits"]
    assert {"secretRef": {"name": "axformer"}} in container["envFrom"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} == {"files", "tmp"}
    assert not any("secret" in str(value).lower() for value in container.get("env", []))


@pytest.mark.parametrize("document", [param for param in WITH_PODS if param.values[0]["kind"] == "Deployment"])
def test_a_program_that_stays_is_watched_and_selected_by_its_labels(document: dict[str, Any]) -> None:
    (container,) = pod_of(document)["containers"]
    assert {"startupProbe", "livenessProbe"} <= set(container)
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_every_setting_is_one_of_the_service() -> None:
    known = {f"AXFORMER_{name.upper()}" for name in Settings.model_fields}
    known |= {f"AXFORMER_STORAGE_{name.upper()}" for name in StorageSettings.model_fields}
    (settings,) = [document for _, document in documents() if document["kind"] == "ConfigMap"]
    assert set(settings["data"]) <= known


def test_only_the_api_takes_requests() -> None:
    policies = [document for _, document in documents() if document["kind"] == "NetworkPolicy"]
    closed = [one for one in policies if one["spec"]["podSelector"] == {} and "ingress" not in one["spec"]]
    assert any(one["spec"]["policyTypes"] == ["Ingress", "Egress"] for one in closed)
    opened = [one["spec"]["podSelector"] for one in policies if "ingress" in one["spec"]]
    assert opened == [{"matchLabels": {"app.kubernetes.io/name": "api"}}]
