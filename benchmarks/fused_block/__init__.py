"""A candidate: the conformer's bottleneck block as one Triton kernel forward and one backward.

The model's block is a chain of small operations (narrow, GELU, five taps, GELU, widen, add, GELU,
LayerNorm) that reads and writes its activations a dozen times. Here each program keeps one tile of
one recording inside a multiprocessor. It is not part of `execution.mode=compiled`: it has to be
measured on a GPU first. One command does that, in under eight minutes, most important rows first:

    PYTHONPATH=src:. python3 -m benchmarks.fused_block --device cuda --out fused-block.json

The file is written after every row. Its phases: `estimate` (bytes, operations and floors, counted
beforehand), `check` (every shape and precision against the model's own block in float64), `steps`
(whole training steps in turns: fused, fused with flat memory, ours compiled, plain compiled),
`digests` (twenty steps in two processes), `blocks` (one block against torch.compile), `variants`
(tiles, warps and stages), `steps_fastest` (whole steps with the fastest variants), `images`
(ResNet-18 in fp32: layouts and convolutions as products). `--only PHASE` runs one of them; images
are last, and a call of their own (`--only images`) if the others took all the time.

Without a GPU, Triton's interpreter runs the same command on small shapes, in some minutes:

    TRITON_INTERPRET=1 PYTHONPATH=src:. python3 -m benchmarks.fused_block --small --out FILE

and `python -m benchmarks.fused_block.resources` compiles every variant for compute capability 9.0
and writes down registers, spills and shared memory (benchmarks/results/fused-block-resources.json).

jit, forward_kernel, backward_kernel: the kernels. tiles, choices, resources: how a block is cut and
the fixed variants. block: the function with its gradient. checks, timings, steps, flat_optimizer,
images: what is measured. settings, phases, warm_up, record: how, and in which order.

Dropout: the block has none. A residual scale is not an operation either: it is folded into the
first weights of `widen`.
"""
