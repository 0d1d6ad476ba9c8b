"""What dropping layers costs on public sets; see :mod:`benchmarks.layers.__main__`."""
