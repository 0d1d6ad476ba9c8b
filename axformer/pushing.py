"""Put a result into a repository of the model hub, in one commit. The service delivers by it, too."""

import re
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

import httpx2
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils.tqdm import disable_progress_bars

from axformer.errors import InputError, NotTakenError, first_line
from axformer.forms.kinds import COMPACT, HUB, KINDS
from axformer.labels import LABELS
from axformer.plan.result_files import no_result
from axformer.wire.answer_sheet import NEEDED, SHEET

_TOPS = (HUB, KINDS[COMPACT].directory)
"""The directories of which the first one's files lie at the top of a repository, where loaders look for a model."""
_PRIVATE = (SHEET, NEEDED, LABELS, ".*", "*/.*")
"""What stays here: files that hold people's rows, and hidden ones."""
_REPORT, _CONFIG = "report.json", "config.json"
_MESSAGE = "Put the result of axformer here"
_SERVER_ERROR = 500


def push(
    result: Path, repository: str, *, private: bool = True, token: str | None = None, endpoint: str | None = None
) -> str:
    """Put a result into a repository, which is made if it is missing. Files that hold rows of data stay here.

    Args:
        result: the directory that :func:`axformer.prune` or ``axformer int8`` wrote.
        repository: ``organisation/name`` or ``hf://organisation/name``, perhaps with ``@branch``.
        private: whether a new repository is for its owner's eyes only; one that exists stays as it is.
        token: of the hub; None for the one that huggingface_hub knows (``HF_TOKEN``, or that of ``hf auth login``).
        endpoint: the hub's address; None for ``HF_ENDPOINT``.

    Returns:
        The address of the commit.

    Raises:
        InputError: there is no result, or no such name of a repository.
        NotTakenError: the hub refuses or fails.
    """
    if not (result / _REPORT).is_file() and not (result / HUB / _CONFIG).is_file():
        raise no_result(result, _REPORT)
    names = (path.relative_to(result).as_posix() for path in sorted(result.rglob("*")) if path.is_file())
    files = {name: result / name for name in names if not any(fnmatchcase(name, one) for one in _PRIVATE)}
    name, _, branch = re.sub("^hf:/*", "", repository).partition("@")
    hub = HfApi(endpoint=endpoint, token=token)
    return put(hub, name, files, _MESSAGE, private=private, branch=branch or None)


def put(
    hub: HfApi, name: str, files: Mapping[str, Path], message: str, *, private: bool, branch: str | None = None
) -> str:
    """Put the files of a result, by their names in it, into a repository; returns the commit's address.

    Raises:
        InputError: the repository's name is none.
        NotTakenError: the hub refuses or fails.
    """
    disable_progress_bars()
    places = arranged(files)
    with ExitStack() as opened:
        # Open files go by plain requests, whose repetitions end; for paths the library would use hf_xet, whose do not.
        added = [CommitOperationAdd(places[one], opened.enter_context(path.open("rb"))) for one, path in files.items()]
        try:
            hub.create_repo(name, private=private, exist_ok=True)
            return str(hub.create_commit(name, added, commit_message=message, revision=branch).commit_url)
        except HFValidationError as error:
            why = first_line(error)
            raise InputError(f"'{name}' names no repository; write organisation/name ({why})") from None
        except HfHubHTTPError as error:
            raise _refused(error, name) from error
        except RuntimeError as error:  # which the library makes of a large file that does not arrive
            cause = error.__cause__
            if isinstance(cause, HfHubHTTPError):
                raise _refused(cause, name) from error
            raise _unavailable(name, type(cause or error).__name__) from error
        except (httpx2.TransportError, OSError) as error:
            raise _unavailable(name, type(error).__name__) from error


def arranged(names: Collection[str]) -> dict[str, str]:
    """Where the files of a result lie in a repository: those of ``hub/`` at the top, where there are none those of ``model/``;
    but what the top of the result has itself, such as the card, is not replaced."""
    top = next((f"{directory}/" for directory in _TOPS if f"{directory}/{_CONFIG}" in names), "")
    bare = {name: name.removeprefix(top) for name in names}
    return {name: name if bare[name] != name and bare[name] in names else bare[name] for name in names}


def _refused(error: HfHubHTTPError, name: str) -> NotTakenError:
    status = error.response.status_code
    if status >= _SERVER_ERROR or status == httpx2.codes.TOO_MANY_REQUESTS:
        return _unavailable(name, f"status {status}")
    why = f"status {status}"
    return NotTakenError(
        f"the hub does not take '{name}' with this token ({why}); check both, and log in by HF_TOKEN or hf auth login",
        why,
    )


def _unavailable(name: str, why: str) -> NotTakenError:
    return NotTakenError(f"the hub does not answer for '{name}' or fails ({why}); try again", why, retryable=True)
