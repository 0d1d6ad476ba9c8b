"""The look that all event streams share."""

import asyncio

from sqlalchemy import text

from store.session import session_scope


def test_the_end_waits_for_a_look_that_is_under_way(app, sessions):
    resources = app.state.resources
    pool = resources.engine.pool

    async def close_while_it_looks() -> None:
        with session_scope(sessions) as session:
            session.execute(text("LOCK TABLE jobs"))
            watching = asyncio.create_task(resources.standings.next("job_1"))
            while pool.checkedout() == 0:
                await asyncio.sleep(0.01)
            watching.cancel()  # the watcher goes away, its look goes on
            closing = asyncio.create_task(resources.close())
            await asyncio.sleep(0.1)
            assert not closing.done()
        await closing

    asyncio.run(close_while_it_looks())
    assert pool.checkedout() == 0, "a connection was out when all were closed"
