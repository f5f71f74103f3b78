import torch
import triton
import triton.language as tl


@triton.jit
def _row_sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    """One program per column block; walks over all rows."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for r in range(rows):
        acc += tl.load(x_ptr + r * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + c, acc, mask=c < cols)


@triton.jit
def _row_sum_atomic_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    """One program per row: faster for many rows."""
    r = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * cols + c, mask=c < cols, other=0.0)
        tl.atomic_add(out_ptr + c, x, mask=c < cols)


def sum_rows(x):
    out = torch.zeros(x.shape[1], device=x.device)
    grid = (triton.cdiv(x.shape[1], 64),)
    _row_sum_kernel[grid](x.contiguous(), out, x.shape[0], x.shape[1], BLOCK=64)
    return out


def sum_rows_fast(x):
    out = torch.zeros(x.shape[1], device=x.device)
    _row_sum_atomic_kernel[(x.shape[0],)](x.contiguous(), out, x.shape[0], x.shape[1], BLOCK=64)
    return out


class BiasAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad):
        return grad, sum_rows(grad)
