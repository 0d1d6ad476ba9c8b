"""What a checkpoint must be before anything loads it.

A checkpoint comes from strangers, and the libraries that load one follow what its files say: they build classes that it
names, allocate what it promises, open paths that it gives. So nothing but files of known names is looked at; each is read
with limits, and what is loaded in the end is a directory of this package's own making: weights whose headers hold, a
configuration and tokenizer files rebuilt from the keys that are known.
"""
