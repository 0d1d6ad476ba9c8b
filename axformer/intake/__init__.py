"""Check a checkpoint before anything loads it.

Checkpoints are untrusted, and the libraries that load them follow what their files say: they build classes that these name,
allocate what they declare, and open paths that they contain. Intake therefore reads only files of known names, each with
limits, and loads a directory that it has written itself: weights with valid headers, and a config and tokenizer files rebuilt
from known keys.
"""
