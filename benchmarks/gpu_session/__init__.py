"""One command for everything that is measured on a machine with a CUDA device.

Here nothing of the package is imported: on a bare machine the command first says what is missing.
"""
