"""Routes that all apps of a process share.

FastAPI reads the signatures of an included router's routes at the first request, which takes a tenth of a second, and keeps
what it has read with the inclusion. ``include_router`` on each app would have them read for each app.
"""

from fastapi import APIRouter, FastAPI


def share(app: FastAPI, router: APIRouter) -> None:
    """Add what the router includes to the app; nothing of it may be an app's own."""
    app.router.routes.extend(router.routes)
