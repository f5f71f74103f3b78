"""The backward kernel, and the one that adds up its weight gradients.

Law: as in the forward kernel. A program writes the weight gradients of its own tile into its own
row of ``parts``; `add_parts` adds the rows in a fixed order. No addition is atomic.

The order of one row is that of `tiles.list_gradients`: narrow (W, C), taps (W out, TAPS, W in),
widen (C, W), then the vectors: narrow's, taps' and widen's bias, scale and shift.
"""

# ruff: noqa: N803  # Triton's constants are written in capitals

from __future__ import annotations

from benchmarks.fused_block.jit import (
    as_operand,
    gelu_slope,
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
def load_skip_gradient(
    skips, q, own, first, channel, length, bins, C: tl.constexpr, STRIDE: tl.constexpr
):
    """Return what the skip passes back to the input rows q, from the scratch of this program."""
    if STRIDE == 1:
        at = skips + (q - first)[:, None] * C + channel[None, :]
        total = tl.load(at, own[:, None], 0.0)
    else:
        # A row belongs to the bins of the formula with the two lengths exchanged: at most two.
        low, high = pool_first(q, bins, length), pool_last(q, bins, length)
        count = pool_last(low, length, bins) - pool_first(low, length, bins) + 1
        at = skips + (low - first)[:, None] * C + channel[None, :]
        total = tl.load(at, own[:, None], 0.0) / count.to(tl.float32)[:, None]
        count = pool_last(high, length, bins) - pool_first(high, length, bins) + 1
        at = skips + (high - first)[:, None] * C + channel[None, :]
        other = tl.load(at, (own & (high > low))[:, None], 0.0)
        total += other / count.to(tl.float32)[:, None]
    return total


@jit
def block_backward(
    dy,  # (samples, bins, C)
    x,  # (samples, length, C)
    narrow,
    taps,
    widen,
    scale,
    z1,
    z2,
    z3,
    mean,
    rstd,
    dx,  # (samples, length, C)
    parts,  # (programs, weights), float32
    h1,  # (programs, PI, W), scratch
    d2,  # (programs, PO, W), scratch: the gradient before the second GELU
    skips,  # (programs, PO, C), scratch: the gradient before the third GELU
    length,
    bins,
    tile,
    tiles,
    weights,
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
    """Return through the block: the input's gradient, and this tile's part of the weights'."""
    program = tl.program_id(0)
    sample, number = program // tiles, program % tiles
    first_out = number * tile
    stop_out = tl.minimum(first_out + tile, bins)
    first_in = tl.maximum(first_out * STRIDE - TAPS // 2, 0)
    first = tl.maximum(first_out - TAPS // 2, 0)  # of the output rows that reach this tile's input
    a, b = tl.arange(0, A), A + tl.arange(0, B)
    in_b = b < W
    chunk, inner = tl.arange(0, BC), tl.arange(0, BK)
    o, i = tl.arange(0, PO), tl.arange(0, PI)
    part_taps = parts + program * weights + W * C
    part_widen = part_taps + TAPS * W * W
    part_vectors = part_widen + W * C
    h1, d2, skips = h1 + program * PI * W, d2 + program * PO * W, skips + program * PO * C

    # [Step 1] The sums of LayerNorm's gradient over the channels, and those of scale and shift.
    t = first + o
    reaches = t < tl.minimum(stop_out + TAPS // 2, bins)
    own = (t >= first_out) & (t < stop_out)
    average = tl.load(mean + sample * bins + t, reaches, 0.0)
    root = tl.load(rstd + sample * bins + t, reaches, 0.0)
    plain, along = tl.zeros((PO,), tl.float32), tl.zeros((PO,), tl.float32)
    for c in range(0, C, BC):
        channel = c + chunk
        at = (sample * bins + t)[:, None] * C + channel[None, :]
        z = tl.load(z3 + at, reaches[:, None], 0.0)
        grad = tl.load(dy + at, reaches[:, None], 0.0)
        normal = (z * half_erf(z) - average[:, None]) * root[:, None]
        mine = tl.where(own[:, None], grad, 0.0)
        tl.store(part_vectors + 2 * W + C + channel, tl.sum(mine * normal, 0))
        tl.store(part_vectors + 2 * W + 2 * C + channel, tl.sum(mine, 0))
        grad = grad * tl.load(scale + channel)[None, :]
        plain += tl.sum(grad, 1)
        along += tl.sum(grad * normal, 1)
    plain, along = plain / C, along / C

    # [Step 2] Back through LayerNorm, the third GELU and the widening product.
    line = (sample * bins + t)[:, None] * W
    za = tl.load(z2 + line + a[None, :], reaches[:, None], 0.0).to(tl.float32)
    zb = tl.load(z2 + line + b[None, :], reaches[:, None] & in_b[None, :], 0.0).to(tl.float32)
    ha, hb = as_operand(za * half_erf(za), BF16), as_operand(zb * half_erf(zb), BF16)
    ga, gb = tl.zeros((PO, A), tl.float32), tl.zeros((PO, B), tl.float32)
    for c in range(0, C, BC):
        channel = c + chunk
        at = (sample * bins + t)[:, None] * C + channel[None, :]
        z = tl.load(z3 + at, reaches[:, None], 0.0)
        grad = tl.load(dy + at, reaches[:, None], 0.0) * tl.load(scale + channel)[None, :]
        phi = half_erf(z)
        normal = (z * phi - average[:, None]) * root[:, None]
        grad = (grad - plain[:, None] - normal * along[:, None]) * root[:, None]
        grad = tl.where(reaches[:, None], grad * gelu_slope(z, phi), 0.0)
        tl.store(skips + o[:, None] * C + channel[None, :], grad)
        mine = rounded(tl.where(own[:, None], grad, 0.0), BF16)
        tl.store(part_vectors + 2 * W + channel, tl.sum(mine, 0))
        mine = tl.trans(as_operand(mine, BF16))
        wide = part_widen + channel[:, None] * W
        empty = tl.zeros((BC, A), tl.float32)
        tl.store(wide + a[None, :], product(mine, ha, empty, PRECISION))
        empty = tl.zeros((BC, B), tl.float32)
        tl.store(wide + b[None, :], product(mine, hb, empty, PRECISION), in_b[None, :])
        back = as_operand(grad, BF16)
        wa = tl.load(widen + channel[:, None] * W + a[None, :])
        wb = tl.load(widen + channel[:, None] * W + b[None, :], in_b[None, :], 0.0)
        ga = product(back, as_operand(wa, BF16), ga, PRECISION)
        gb = product(back, as_operand(wb, BF16), gb, PRECISION)

    # [Step 3] Back through the second GELU; store its gradient and the convolution's input.
    ga = rounded(rounded(ga, BF16) * gelu_slope(za, half_erf(za)), BF16)
    gb = rounded(rounded(gb, BF16) * gelu_slope(zb, half_erf(zb)), BF16)
    tl.store(d2 + o[:, None] * W + a[None, :], ga)
    tl.store(d2 + o[:, None] * W + b[None, :], gb, in_b[None, :])
    ga, gb = tl.where(own[:, None], ga, 0.0), tl.where(own[:, None], gb, 0.0)
    tl.store(part_vectors + W + a, tl.sum(ga, 0))
    tl.store(part_vectors + W + b, tl.sum(gb, 0), in_b)
    ga, gb = as_operand(ga, BF16), as_operand(gb, BF16)
    row = first_in + i
    is_row = row < length
    line = (sample * length + row)[:, None] * W
    za = tl.load(z1 + line + a[None, :], is_row[:, None], 0.0).to(tl.float32)
    zb = tl.load(z1 + line + b[None, :], is_row[:, None] & in_b[None, :], 0.0).to(tl.float32)
    tl.store(h1 + i[:, None] * W + a[None, :], za * half_erf(za))
    tl.store(h1 + i[:, None] * W + b[None, :], zb * half_erf(zb), in_b[None, :])
    wait_for_stores()  # below, threads read what other threads of this program stored

    # [Step 4] The taps' gradient: the windows, transposed, times the gradient of their outputs.
    begin = t * STRIDE - TAPS // 2
    for k0 in range(0, TAPS * W, BK):
        k = k0 + inner
        is_k = k < TAPS * W
        read = begin[:, None] + (k // W)[None, :]
        inside = own[:, None] & is_k[None, :] & (read >= 0) & (read < length)
        part = tl.load(h1 + (begin - first_in)[:, None] * W + k[None, :], inside, 0.0)
        part = tl.trans(part)
        to = part_taps + k[:, None]
        empty = tl.zeros((BK, A), tl.float32)
        tl.store(to + a[None, :] * (TAPS * W), product(part, ga, empty, PRECISION), is_k[:, None])
        empty = tl.zeros((BK, B), tl.float32)
        whole = is_k[:, None] & in_b[None, :]
        tl.store(to + b[None, :] * (TAPS * W), product(part, gb, empty, PRECISION), whole)

    # [Step 5] Back through the convolution: the same windows over its output, taps reversed.
    q = first_out * STRIDE + i
    mine = (q < (first_out + tile) * STRIDE) & (q < length)
    ga, gb = tl.zeros((PI, A), tl.float32), tl.zeros((PI, B), tl.float32)
    for k0 in range(0, TAPS * W, BK):
        k = k0 + inner
        tap, source = k // W, k % W
        read = q[:, None] - TAPS // 2 + tap[None, :]
        is_k = k < TAPS * W
        inside = mine[:, None] & is_k[None, :] & (read >= 0)
        if STRIDE == 1:  # a window is contiguous, as in the forward kernel
            inside = inside & (read < bins)
            at = (q - TAPS // 2 - first)[:, None] * W + k[None, :]
        else:
            inside = inside & (read % STRIDE == 0) & (read < bins * STRIDE)
            at = (read // STRIDE - first) * W + source[None, :]
        part = tl.load(d2 + at, inside, 0.0)
        weight = taps + (source * (TAPS * W) + (TAPS - 1 - tap) * W)[:, None]
        wa = tl.load(weight + a[None, :], is_k[:, None], 0.0)
        wb = tl.load(weight + b[None, :], is_k[:, None] & in_b[None, :], 0.0)
        ga = product(part, as_operand(wa, BF16), ga, PRECISION)
        gb = product(part, as_operand(wb, BF16), gb, PRECISION)
    line = (sample * length + q)[:, None] * W
    za = tl.load(z1 + line + a[None, :], mine[:, None], 0.0).to(tl.float32)
    zb = tl.load(z1 + line + b[None, :], mine[:, None] & in_b[None, :], 0.0).to(tl.float32)
    ga = rounded(rounded(ga, BF16) * gelu_slope(za, half_erf(za)), BF16)
    gb = rounded(rounded(gb, BF16) * gelu_slope(zb, half_erf(zb)), BF16)
    tl.store(part_vectors + a, tl.sum(ga, 0))
    tl.store(part_vectors + b, tl.sum(gb, 0), in_b)
    ga, gb = as_operand(ga, BF16), as_operand(gb, BF16)

    # [Step 6] Back through the narrowing product; add what the skip passes back.
    for c in range(0, C, BC):
        channel = c + chunk
        at = (sample * length + q)[:, None] * C + channel[None, :]
        part = tl.trans(as_operand(tl.load(x + at, mine[:, None], 0.0), BF16))
        to = parts + program * weights + channel[:, None]
        empty = tl.zeros((BC, A), tl.float32)
        tl.store(to + a[None, :] * C, product(part, ga, empty, PRECISION))
        empty = tl.zeros((BC, B), tl.float32)
        tl.store(to + b[None, :] * C, product(part, gb, empty, PRECISION), in_b[None, :])
        wa = tl.load(narrow + a[:, None] * C + channel[None, :])
        wb = tl.load(narrow + b[:, None] * C + channel[None, :], in_b[:, None], 0.0)
        grad = product(ga, as_operand(wa, BF16), tl.zeros((PI, BC), tl.float32), PRECISION)
        grad = rounded(product(gb, as_operand(wb, BF16), grad, PRECISION), BF16)
        skip = load_skip_gradient(skips, q, mine, first, channel, length, bins, C, STRIDE)
        tl.store(dx + at, grad + skip, mine[:, None])


@jit
def add_parts(parts, out, weights, COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add the rows of ``parts`` (COUNT, weights) into ``out`` (weights,): ROWS at a time."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, COUNT, ROWS):
        at = (start + row)[:, None] * weights + column[None, :]
        inside = ((start + row) < COUNT)[:, None] & (column < weights)[None, :]
        total += tl.sum(tl.load(parts + at, inside, 0.0), 0)
    tl.store(out + column, total, column < weights)
