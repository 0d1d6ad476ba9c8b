"""The line handed to the workers: in order, to those that can take the job, one job a worker at a time."""

from hypothesis import given
from hypothesis import strategies as st

from api.services.estimates import Busy, Demand, WaitingTime, estimates
from axformer.wire.devices import Device, can_take

SECONDS = st.floats(0, 1e6)
HARDWARE = st.sampled_from([Device.CPU, Device.GPU])
MEMORY = st.integers(1, 3)
NEED = st.none() | st.dictionaries(st.sampled_from(["asked", "cpu", "gpu"]), MEMORY)
WORKERS = st.lists(st.builds(Busy, HARDWARE, SECONDS, st.none() | MEMORY), max_size=5)
LINE = st.lists(st.builds(Demand, st.sampled_from(Device), SECONDS, NEED), max_size=20)


@given(workers=WORKERS, line=LINE)
def test_no_more_jobs_run_at_a_time_than_workers_can_take_them(workers, line):
    found = estimates(workers, line)
    assert len(found) == len(line)
    for device in (Device.CPU, Device.GPU):
        able = [worker for worker in workers if worker.device is device]
        only = [one for one, job in zip(found, line, strict=True) if job.device is device and one.starts is not None]
        busy = [(0.0, worker.seconds) for worker in able] + [(one.starts, one.ends) for one in only]
        for start, _ in busy:
            assert sum(begun <= start < end for begun, end in busy) <= len(able)
    for one, job in zip(found, line, strict=True):
        can_be_taken = any(can_take(one.device, one.memory, job.device, job.memory) for one in workers)
        assert (one.starts is not None) is can_be_taken
        assert one.ends == (None if one.starts is None else one.starts + job.seconds)


@given(busy=st.lists(SECONDS, min_size=1, max_size=5), line=st.lists(SECONDS, max_size=20))
def test_jobs_that_any_worker_can_take_start_in_order_and_as_soon_as_one_is_free(busy, line):
    workers = [Busy(Device.CPU, seconds) for seconds in busy]
    starts = [one.starts for one in estimates(workers, [Demand(Device.ANY, seconds) for seconds in line])]
    assert starts == sorted(starts)
    for place, start in enumerate(starts):
        ends = busy + [begun + seconds for begun, seconds in zip(starts[:place], line, strict=False)]
        assert sum(end > start for end in ends) < len(busy)
        assert start in ends


def test_an_idle_worker_takes_the_first_job_it_can_and_leaves_the_others():
    line = [Demand(Device.GPU, 5.0), Demand(Device.CPU, 7.0), Demand(Device.ANY, 1.0)]
    found = estimates([Busy(Device.CPU, 0.0), Busy(Device.GPU, 60.0)], line)
    assert found == [WaitingTime(60.0, 65.0), WaitingTime(0.0, 7.0), WaitingTime(7.0, 8.0)]


def test_a_job_waits_for_a_worker_with_enough_memory():
    workers = [Busy(Device.GPU, 0.0, 16), Busy(Device.GPU, 60.0, 80), Busy(Device.CPU, 0.0, 99)]
    line = [
        Demand(Device.GPU, 5.0, {"gpu": 40}),
        Demand(Device.GPU, 7.0, {"asked": 16}),
        Demand(Device.GPU, 1.0, {"gpu": 81}),
    ]
    assert estimates(workers, line) == [WaitingTime(60.0, 65.0), WaitingTime(0.0, 7.0), WaitingTime(None, None)]


def test_what_is_not_known_is_not_estimated():
    nothing = WaitingTime(None, None)
    one = [Demand(Device.ANY, 10.0)]
    assert estimates([], one) == [nothing]
    assert estimates([Busy(Device.CPU, 1.0), Busy(Device.GPU, None)], one) == [nothing]
    assert estimates([Busy(Device.CPU, 0.0), Busy(Device.GPU, None)], one * 2) == [WaitingTime(0.0, 10.0), nothing]
    unknown = [Demand(Device.ANY, None)] * 2
    assert estimates([Busy(Device.CPU, 1.0)], unknown) == [WaitingTime(1.0, None), nothing]
