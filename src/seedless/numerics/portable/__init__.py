"""Arithmetic whose bits are the same on every processor: each op a function of its inputs alone.

Two facts carry everything. A float64 sum of integers is exact in any order while it stays within
2^53, so every reduction first rounds its operands to a power-of-two grid (`grid`, `reduce`,
`gemm`). And float64 addition, multiplication and division are correctly rounded everywhere, as
long as each is a kernel of its own (`elementary`); square roots, as libraries take them, are not.
`mode.portable` puts both under anyone's forward pass, backward pass and optimizer step, and
refuses every op it does not know.
"""
