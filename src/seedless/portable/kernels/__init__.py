"""Compiled kernels: an op that takes many of torch's kernels takes one or a few, for the same bits.

The kernels are one C text (`c/`), compiled by this machine's C compiler for the CPU and by NVRTC
for CUDA. Each function here returns None, or False, where no kernel takes its arguments; the caller
then computes the same bits from torch's own ops, more slowly.
"""
