"""What the operations of a pass take by themselves, kernel by kernel: what is beside them, Python and waiting, could go."""

from collections.abc import Callable, Mapping

from torch.profiler import ProfilerActivity, profile

from axformer.architectures.top_k import SORT

_KINDS = {
    "multiplications": ("mkldnn::_linear_pointwise", "aten::addmm", "aten::mm"),
    "attention": ("aten::bmm", "aten::_softmax", "aten::topk", "aten::scatter", SORT, "aten::ge"),
    "norms": ("aten::native_layer_norm",),
    "copies": ("aten::copy_", "aten::clone", "aten::index_select", "aten::index"),
}
"""Kernels by what they are for; those that are not named are the rest."""
REST = "all others"


def seconds_by_kind(work: Callable[[], object]) -> dict[str, float]:
    """Seconds of the kernels that ``work`` runs on a CPU, in the thread that calls; those that kernels call are theirs."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    return by_kind({one.key: one.self_cpu_time_total / 1e6 for one in profiler.key_averages()})


def by_kind(seconds: Mapping[str, float]) -> dict[str, float]:
    """The same by kind, from seconds by the name of the kernel."""
    kind_of = {name: kind for kind, names in _KINDS.items() for name in names}
    found = dict.fromkeys((*_KINDS, REST), 0.0)
    for name, taken in seconds.items():
        found[kind_of.get(name, REST)] += taken
    return found
