"""Repositories of a model hub. A revision is turned into its commit first, so that all files are of one version."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from axformer.intake.names import MODULE_FILES
from store.references import ParsedReference
from worker.fetching.errors import ReferenceDenied, ReferenceMissing, SourceUnavailable
from worker.fetching.http import open_url
from worker.fetching.policy import FetchPolicy, with_private_host
from worker.fetching.source import ReferenceSource, SourceContent


class HubSource(ReferenceSource):
    """A repository of models, or a file of a repository of data sets."""

    def __init__(self, reference: ParsedReference, policy: FetchPolicy) -> None:
        # The operator chose the hub, so its host may be private; where it redirects to is checked as everywhere.
        super().__init__(reference, with_private_host(policy, urlsplit(policy.hub_endpoint).hostname or ""))
        self._type = "dataset" if reference.path else "model"
        self._endpoint = policy.hub_endpoint
        # False: no token that happens to lie on this machine
        self._token: str | bool = (policy.uses_credentials(reference) and policy.hub_token) or False

    def names(self) -> Sequence[str] | None:
        return sorted(name for name in self._commit[1] if "/" not in name or name in MODULE_FILES)

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
        # A file of a known commit is asked for too, and not read: the hub tells the commit of a gated repository to anybody, so
        # only its answer for the file says whether this token may have what another's has brought.
        commit, _ = self._commit
        path = name or self._reference.path
        url = hf_hub_url(self._reference.place, path, repo_type=self._type, revision=commit, endpoint=self._endpoint)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        shown = self._reference.shown if name is None else f"{self._reference.shown}/{name}"
        with self._naming_the_gate(), open_url(url, shown, self._policy, headers=headers) as content:
            assert content is not None  # nothing was known to the URL
            yield None if commit == known else SourceContent(content.chunks, content.size, commit)

    @contextmanager
    def _naming_the_gate(self) -> Iterator[None]:
        try:
            yield
        except (GatedRepoError, ReferenceDenied):
            shown = self._reference.shown
            if self._token:
                raise ReferenceDenied(
                    f"'{shown}' is gated, and the token may not read it; ask its owner for access, or upload the files"
                ) from None
            raise ReferenceDenied(
                f"'{shown}' is gated; post the job with a hub token that may read it, have the operator grant "
                f"hf://{self._reference.place.partition('/')[0]} to your team, or upload the files"
            ) from None

    @cached_property
    def _commit(self) -> tuple[str, tuple[str, ...]]:
        """The commit that the revision stands for now, and the paths of its files."""
        shown = self._reference.shown
        api = HfApi(endpoint=self._endpoint, token=self._token)
        try:
            ask = api.dataset_info if self._type == "dataset" else api.model_info
            with self._naming_the_gate():
                info = ask(self._reference.place, revision=self._reference.revision, timeout=self._policy.read_seconds)
        except RevisionNotFoundError:
            raise ReferenceMissing(f"'{shown}' has no revision '{self._reference.revision}'; check it") from None
        except RepositoryNotFoundError:
            needed = "" if self._token else ", or post the job with a hub token that may read it"
            raise ReferenceMissing(
                f"'{shown}' does not exist on the hub, or is private; check its name{needed}"
            ) from None
        except (HfHubHTTPError, httpx2.TransportError) as error:
            raise SourceUnavailable(f"the hub cannot be asked for '{shown}': {error}; try again later") from error
        if not info.sha:
            raise SourceUnavailable(f"the hub names no commit of '{shown}'; try again later")
        return info.sha, tuple(file.rfilename for file in info.siblings or ())
