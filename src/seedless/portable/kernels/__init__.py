"""Fused forms of portable ops: one kernel where the op-by-op form has many, with the same bits.

The kernels are one text, compiled by this machine's C compiler for a CPU and by NVRTC for CUDA.
Where there is no compiler, ops are computed op by op, slower.
"""
