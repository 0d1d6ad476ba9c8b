"""What endpoints are given: settings, a session that commits before the answer is sent, the storage, the caller."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session

from api.errors import UnauthorizedError
from api.resources import Resources
from store.repositories.keys import Caller, authenticate
from store.session import session_scope
from store.settings import Settings
from store.storage import Storage

_BEARER = HTTPBearer(auto_error=False, bearerFormat="axk_ID_SECRET", description="A key of your team.")


def resources(request: Request) -> Resources:
    """What the app was made with."""
    made: Resources = request.app.state.resources
    return made


ResourcesDep = Annotated[Resources, Depends(resources)]


def settings(resources: ResourcesDep) -> Settings:
    """The service's settings."""
    return resources.settings


def storage(resources: ResourcesDep) -> Storage:
    """Where files lie."""
    return resources.storage


def session(resources: ResourcesDep) -> Iterator[Session]:
    """The request's session: committed when the endpoint returns, rolled back when it raises."""
    with session_scope(resources.sessions) as opened:
        yield opened


def caller(
    resources: ResourcesDep, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
) -> Caller:
    """Whom the request's key stands for, in a transaction of its own, so that no stream or upload keeps one open.

    Raises:
        UnauthorizedError: there is no key, or it is not valid.
    """
    challenge = {"WWW-Authenticate": 'Bearer realm="axformer"'}
    if credentials is None:
        raise UnauthorizedError("there is no key; send 'Authorization: Bearer axk_...'", headers=challenge)
    with session_scope(resources.sessions) as opened:
        found = authenticate(opened, credentials.credentials)
    if found is None:
        challenge["WWW-Authenticate"] += ', error="invalid_token"'
        raise UnauthorizedError("the key is unknown or revoked; ask for a new one", headers=challenge)
    return found


SettingsDep = Annotated[Settings, Depends(settings)]
StorageDep = Annotated[Storage, Depends(storage)]
# Of scope "function", so that the commit is done, or has failed, before the answer says so.
SessionDep = Annotated[Session, Depends(session, scope="function")]
CallerDep = Annotated[Caller, Depends(caller)]
