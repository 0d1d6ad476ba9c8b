"""Ranked pruning beside the pass and compression on public sets; see :mod:`benchmarks.rank.__main__`."""
