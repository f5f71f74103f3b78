"""The forward kernel: one program computes the block for one tile of one recording.

Law: every value is computed by one program, in an order that the tile shapes fix. Nothing is added
atomically and nothing depends on which program runs first, so the bits repeat.

Channels C are read in chunks of BC. The W channels inside a bottleneck are no power of two, as
Triton needs it: they are two pieces, the first A and the next (up to) B, the rest masked.
"""

# ruff: noqa: N803  # Triton's constants are written in capitals

from __future__ import annotations

from benchmarks.fused_block.jit import (
    as_operand,
    half_erf,
    jit,
    pool_first,
    pool_last,
    product,
    rounded,
    tl,
    wait_for_stores,
)


@jit
def load_skip(x, base, t, own, channel, length, bins, C: tl.constexpr, STRIDE: tl.constexpr):
    """Return x at the output rows t, averaged over time where the block shortens it."""
    if STRIDE == 1:
        skip = tl.load(x + (base + t)[:, None] * C + channel[None, :], own[:, None], 0.0)
    else:
        first = pool_first(t, length, bins)
        last = pool_last(t, length, bins)
        skip = tl.load(x + (base + first)[:, None] * C + channel[None, :], own[:, None], 0.0)
        for step in tl.static_range(1, STRIDE + 1):  # a bin has at most STRIDE + 1 samples
            inside = own & (first + step <= last)
            row = (base + first + step)[:, None] * C
            skip += tl.load(x + row + channel[None, :], inside[:, None], 0.0)
        skip = skip / (last - first + 1).to(tl.float32)[:, None]
    return skip


@jit
def block_forward(
    x,  # (samples, length, C)
    narrow,  # (W, C)
    narrow_bias,
    taps,  # (W out, TAPS, W in)
    taps_bias,
    widen,  # (C, W)
    widen_bias,
    scale,  # of the LayerNorm
    shift,
    y,  # (samples, bins, C)
    z1,  # (samples, length, W), before the first GELU
    z2,  # (samples, bins, W), before the second
    z3,  # (samples, bins, C), before the third
    mean,  # (samples, bins)
    rstd,
    h1,  # (programs, PI, W), scratch
    length,
    bins,
    tile,
    tiles,
    eps,
    STRIDE: tl.constexpr,
    TAPS: tl.constexpr,
    C: tl.constexpr,
    W: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    PI: tl.constexpr,
    PO: tl.constexpr,
    BC: tl.constexpr,
    BK: tl.constexpr,
    BF16: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Narrow, GELU, convolve, GELU, widen, add the skip, GELU, LayerNorm."""
    program = tl.program_id(0)
    sample, number = program // tiles, program % tiles
    first_out = number * tile
    stop_out = tl.minimum(first_out + tile, bins)
    first_in = tl.maximum(first_out * STRIDE - TAPS // 2, 0)
    a, b = tl.arange(0, A), A + tl.arange(0, B)
    in_b = b < W
    chunk, inner = tl.arange(0, BC), tl.arange(0, BK)

    # [Step 1] Narrow the rows that the windows of this tile read.
    i = tl.arange(0, PI)
    row = first_in + i
    is_row = row < length
    za, zb = tl.zeros((PI, A), tl.float32), tl.zeros((PI, B), tl.float32)
    for c in range(0, C, BC):
        channel = c + chunk
        at = (sample * length + row)[:, None] * C + channel[None, :]
        part = as_operand(tl.load(x + at, is_row[:, None], 0.0), BF16)
        wa = tl.load(narrow + a[None, :] * C + channel[:, None])
        wb = tl.load(narrow + b[None, :] * C + channel[:, None], in_b[None, :], 0.0)
        za = product(part, as_operand(wa, BF16), za, PRECISION)
        zb = product(part, as_operand(wb, BF16), zb, PRECISION)
    za = rounded(za + rounded(tl.load(narrow_bias + a), BF16)[None, :], BF16)
    zb = rounded(zb + rounded(tl.load(narrow_bias + b, in_b, 0.0), BF16)[None, :], BF16)
    # Neighbouring tiles compute some rows twice: each row is saved by the tile that owns it.
    owns = is_row & (row >= first_out * STRIDE) & (row < (first_out + tile) * STRIDE)
    line = (sample * length + row)[:, None] * W
    tl.store(z1 + line + a[None, :], za, owns[:, None])
    tl.store(z1 + line + b[None, :], zb, owns[:, None] & in_b[None, :])
    slot = h1 + program * PI * W
    tl.store(slot + i[:, None] * W + a[None, :], za * half_erf(za))
    tl.store(slot + i[:, None] * W + b[None, :], zb * half_erf(zb), in_b[None, :])
    wait_for_stores()  # the windows below read what other threads of this program stored

    # [Step 2] Convolve. A window is contiguous in the scratch: rows of W channels, tap after tap.
    t = first_out + tl.arange(0, PO)
    own = t < stop_out
    za, zb = tl.zeros((PO, A), tl.float32), tl.zeros((PO, B), tl.float32)
    begin = t * STRIDE - TAPS // 2
    for k0 in range(0, TAPS * W, BK):
        k = k0 + inner
        read = begin[:, None] + (k // W)[None, :]
        inside = own[:, None] & (k < TAPS * W)[None, :] & (read >= 0) & (read < length)
        part = tl.load(slot + (begin - first_in)[:, None] * W + k[None, :], inside, 0.0)
        weight, is_k = taps + k[:, None], (k < TAPS * W)[:, None]
        wa = tl.load(weight + a[None, :] * (TAPS * W), is_k, 0.0)
        wb = tl.load(weight + b[None, :] * (TAPS * W), is_k & in_b[None, :], 0.0)
        za = product(part, as_operand(wa, BF16), za, PRECISION)
        zb = product(part, as_operand(wb, BF16), zb, PRECISION)
    za = rounded(za + rounded(tl.load(taps_bias + a), BF16)[None, :], BF16)
    zb = rounded(zb + rounded(tl.load(taps_bias + b, in_b, 0.0), BF16)[None, :], BF16)
    line = (sample * bins + t)[:, None] * W
    tl.store(z2 + line + a[None, :], za, own[:, None])
    tl.store(z2 + line + b[None, :], zb, own[:, None] & in_b[None, :])
    ha, hb = as_operand(za * half_erf(za), BF16), as_operand(zb * half_erf(zb), BF16)

    # [Step 3] Widen, add the skip, GELU; join mean and squared deviations chunk by chunk (Chan,
    # Golub and LeVeque, 1979), so that the chunks are read once.
    average, squares = tl.zeros((PO,), tl.float32), tl.zeros((PO,), tl.float32)
    for c in range(0, C, BC):
        channel = c + chunk
        wa = tl.load(widen + channel[None, :] * W + a[:, None])
        wb = tl.load(widen + channel[None, :] * W + b[:, None], in_b[:, None], 0.0)
        branch = product(ha, as_operand(wa, BF16), tl.zeros((PO, BC), tl.float32), PRECISION)
        branch = product(hb, as_operand(wb, BF16), branch, PRECISION)
        branch = rounded(branch + rounded(tl.load(widen_bias + channel), BF16)[None, :], BF16)
        skip = load_skip(x, sample * length, t, own, channel, length, bins, C, STRIDE)
        z = skip + branch
        tl.store(z3 + (sample * bins + t)[:, None] * C + channel[None, :], z, own[:, None])
        u = z * half_erf(z)
        here = tl.sum(u, 1) / BC
        off = u - here[:, None]
        gap = here - average
        squares += tl.sum(off * off, 1) + gap * gap * (c * BC / (c + BC))
        average += gap * (BC / (c + BC))
    root = 1.0 / tl.sqrt_rn(squares / C + eps)
    tl.store(mean + sample * bins + t, average, own)
    tl.store(rstd + sample * bins + t, root, own)
    wait_for_stores()

    # [Step 4] Normalize.
    for c in range(0, C, BC):
        channel = c + chunk
        at = (sample * bins + t)[:, None] * C + channel[None, :]
        z = tl.load(z3 + at, own[:, None], 0.0)
        out = (z * half_erf(z) - average[:, None]) * root[:, None]
        out = out * tl.load(scale + channel)[None, :] + tl.load(shift + channel)[None, :]
        tl.store(y + at, out, own[:, None])
