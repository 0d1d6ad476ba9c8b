"""Dependencies of endpoints: settings, a session that commits before the answer is sent, the storage, the caller.

Lookups are ``async`` so that they are called directly; anything else goes to a thread and back. They take the request instead
of each other, because each dependency costs every request about a fiftieth of its time.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from sqlalchemy.orm import Session

from api.middleware.headers import tell_rate
from api.resources import Resources
from api.services import access
from axformer.wire.scopes import Scope
from store.repositories.keys import Caller
from store.session import session_scope
from store.settings import Settings
from store.storage.storage import Storage

_BEARER = HTTPBearer(auto_error=False, bearerFormat="axk_ID_SECRET", description="A key of your team.")


async def resources(request: Request) -> Resources:
    """The app's resources."""
    return _made_with(request)


def _made_with(request: Request) -> Resources:
    made: Resources = request.app.state.resources
    return made


async def settings(request: Request) -> Settings:
    """The service's settings."""
    return _made_with(request).settings


async def storage(request: Request) -> Storage:
    """The storage of files."""
    return _made_with(request).storage


async def turn(request: Request) -> AsyncIterator[None]:
    """A turn to hold a session, first come, first served.

    A request holds its session's connection from its first statement to its end, and needs a thread in between. If more
    requests started than there are connections, those with a connection would wait for threads, and those with a thread
    for connections.
    """
    async with _made_with(request).session_limiter:
        yield


TurnDep = Annotated[None, Depends(turn, scope="function")]


def session(request: Request, _: TurnDep) -> Iterator[Session]:
    """The request's session: committed when the endpoint returns, rolled back when it raises."""
    with session_scope(_made_with(request).sessions) as opened:
        yield opened


async def reading_session(request: Request) -> AsyncIterator[Session]:
    """The session of a request that changes nothing. Opening and closing it does not contact the database."""
    made = _made_with(request)
    async with made.session_limiter:
        with made.reading_sessions() as opened:
            yield opened


def caller(
    request: Request,
    demanded: SecurityScopes,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> Caller:
    """The caller of the request, whose key must have the scope that the route demands.

    Raises:
        NoValidKeyError: there is no key, or it is not valid.
        LimitReachedError: the key, or this address without a valid key, has made too many requests.
        NotPermittedError: its scope does not allow this.
    """
    resources = _made_with(request)
    address = request.client.host if request.client else None
    found = access.sign_in(resources, credentials.credentials if credentials else None, address)
    rate = access.count_request(resources, found)
    if rate is not None:
        tell_rate(request.scope, rate.headers)
    for scope in demanded.scopes:
        access.check_scope(found, Scope(scope))
    return found


ResourcesDep = Annotated[Resources, Depends(resources)]
SettingsDep = Annotated[Settings, Depends(settings)]
StorageDep = Annotated[Storage, Depends(storage)]
ReadingDep = Annotated[Session, Depends(reading_session, scope="function")]
# Of scope "function", so that the commit is done, or has failed, before the answer says so.
SessionDep = Annotated[Session, Depends(session, scope="function")]
# Every route demands one of these, which is also what the OpenAPI document says of it.
CallerDep = Annotated[Caller, Security(caller, scopes=[Scope.READ.value])]
WriterDep = Annotated[Caller, Security(caller, scopes=[Scope.WRITE.value])]
AdminDep = Annotated[Caller, Security(caller, scopes=[Scope.ADMIN.value])]
