"""What is known of operations whose bits are not the same each time, or depend on the threads.

The facts are those of torch's documentation: `torch.use_deterministic_algorithms`, its notes on
randomness, and the notes of `torch.nn.LSTM` and of attention. An operation is listed by its aten
name without the overload and without the underscore of its in-place form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CPU, CUDA = "cpu", "cuda"

NONDETERMINISTIC = "nondeterministic-op"
AUTOTUNE = "cudnn-autotune"
THREADS = "threads"

SWITCH = "call torch.use_deterministic_algorithms(True) at the start of the script"


@dataclass(frozen=True)
class OpFact:
    """Why an operation may give other bits, and what to do.

    Attributes:
        op: its aten name.
        cause: the code of the cause: "nondeterministic-op", "cudnn-autotune" or "threads".
        reason: why, as a clause after "because".
        advice: what to do, in one sentence without a full stop.
        has_deterministic_form: `torch.use_deterministic_algorithms(True)` makes it deterministic.
            Otherwise the switch makes it raise an error, or has no effect on it.
    """

    op: str
    cause: str
    reason: str
    advice: str
    has_deterministic_form: bool


_ADDS = "several threads of the GPU add to the same element, in any order"
_WRITES = "several values are written to the same element, in any order"
_MAY_REPEAT = "several threads add to the same element where an index occurs twice"

# Operations that become deterministic with the switch, by device: name -> reason.
_WITH_SWITCH: Mapping[str, Mapping[str, str]] = {
    CUDA: {
        "index_put": _ADDS,
        "_index_put_impl": _ADDS,
        "_unsafe_index_put": _ADDS,
        "index_add": _ADDS,
        "index_copy": _WRITES,
        "scatter": _WRITES,
        "scatter_add": _ADDS,
        "scatter_reduce": _ADDS,
        "max_pool3d_with_indices_backward": _ADDS,
        **dict.fromkeys([f"replication_pad{n}d_backward" for n in (1, 2, 3)], _ADDS),
        **dict.fromkeys(
            [
                f"{prefix}_attention_backward"
                for prefix in (
                    *("_flash", "_efficient", "_scaled_dot_product_flash"),
                    *("_scaled_dot_product_efficient", "_scaled_dot_product_cudnn"),
                )
            ],
            "the fused kernel adds the gradients of the keys and values in any order",
        ),
    },
    CPU: {
        "index_put": _MAY_REPEAT,
        "_index_put_impl": _MAY_REPEAT,
        "_unsafe_index_put": _MAY_REPEAT,
        "index_copy": _WRITES,
    },
}

# Operations without a deterministic form, by device: name -> (reason, replacement).
_WITHOUT_FORM: Mapping[str, Mapping[str, tuple[str, str]]] = {
    CUDA: {
        "histc": (_ADDS, "compute the histogram on the CPU: x.cpu().histc(...)"),
        "bincount": (_ADDS, "call it without weights, or on the CPU: torch.bincount(x.cpu(), ...)"),
        "cumsum": (
            "the parallel sum is split differently from call to call",
            "compute it on the CPU, or on integers: x.cpu().cumsum(...)",
        ),
        "put": (_WRITES, "use index_put or scatter with indices that do not repeat"),
        "median": (
            "any of the equal elements may give the index",
            "use x.median() without dim, or x.sort(dim, stable=True) and take the middle",
        ),
        "nanmedian": (
            "any of the equal elements may give the index",
            "use x.nanmedian() without dim, or sort with stable=True and take the middle",
        ),
        "kthvalue": (
            "any of the equal elements may give the index",
            "use x.sort(dim, stable=True) and take the element",
        ),
        "nll_loss2d_forward": (_ADDS, "use reduction='none' and sum the losses yourself"),
        "nll_loss2d_backward": (_ADDS, "use reduction='none' and sum the losses yourself"),
        "_ctc_loss_backward": (_ADDS, "use cuDNN's CTC loss (int32 targets on the CPU, blank=0)"),
        "_embedding_bag_backward": (_ADDS, "use mode='sum' or 'mean', or nn.Embedding and amax"),
        "_embedding_bag_dense_backward": (
            _ADDS,
            "use mode='sum' or 'mean', or nn.Embedding and amax",
        ),
        "avg_pool3d_backward": (_ADDS, "use a convolution with constant weights"),
        "_adaptive_avg_pool2d_backward": (
            _ADDS,
            "use x.mean((-2, -1)) for size 1, or nn.AvgPool2d with a fixed size",
        ),
        "_adaptive_avg_pool3d_backward": (
            _ADDS,
            "use x.mean((-3, -2, -1)) for size 1",
        ),
        "adaptive_max_pool2d_backward": (_ADDS, "use x.amax((-2, -1)) for size 1"),
        "adaptive_max_pool3d_backward": (_ADDS, "use x.amax((-3, -2, -1)) for size 1"),
        "fractional_max_pool2d_backward": (_ADDS, "use nn.MaxPool2d"),
        "fractional_max_pool3d_backward": (_ADDS, "use nn.MaxPool3d"),
        "grid_sampler_2d_backward": (_ADDS, "compute grid_sample on the CPU, or without gradients"),
        "grid_sampler_3d_backward": (_ADDS, "compute grid_sample on the CPU, or without gradients"),
        **dict.fromkeys(
            [f"reflection_pad{n}d_backward" for n in (1, 2, 3)],
            (_ADDS, "pad with zeros or replication, or pad outside the gradient"),
        ),
        **dict.fromkeys(
            [
                *("upsample_linear1d_backward", "upsample_bilinear2d_backward"),
                *("upsample_bicubic2d_backward", "upsample_trilinear3d_backward"),
                *("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward"),
            ],
            (_ADDS, "use interpolate(mode='nearest'), or nn.ConvTranspose2d"),
        ),
        **dict.fromkeys(
            ["max_unpool2d", "max_unpool3d"], (_WRITES, "do not repeat an index, or interpolate")
        ),
        **dict.fromkeys(
            ["_cudnn_rnn", "_cudnn_rnn_backward"],
            (
                "cuBLAS may use several workspaces at once",
                "set CUBLAS_WORKSPACE_CONFIG=:4096:2 before the script starts",
            ),
        ),
    },
    CPU: {
        "put": (_WRITES, "use index_put or scatter with indices that do not repeat"),
        **dict.fromkeys(
            ["max_unpool2d", "max_unpool3d"], (_WRITES, "do not repeat an index, or interpolate")
        ),
    },
}
_CONVOLUTIONS = frozenset(
    {
        *("convolution", "convolution_backward", "convolution_overrideable"),
        *("cudnn_convolution", "cudnn_convolution_transpose", "_convolution"),
        *("cudnn_convolution_relu", "cudnn_convolution_add_relu"),
    }
)
_PRODUCTS = frozenset(
    {
        *("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "linear"),
        *("_addmm_activation", "linalg_vector_norm"),
    }
)

# Operations that add many numbers: on a CPU the threads share the sum out among themselves.
_SUMS = frozenset(
    {
        *("sum", "mean", "var", "var_mean", "std", "std_mean", "prod", "norm", "cumsum"),
        *("logsumexp", "nansum", "native_batch_norm", "native_batch_norm_backward"),
        *("_native_batch_norm_legit", "_batch_norm_with_update", "batch_norm_backward"),
        *("native_layer_norm", "native_layer_norm_backward", "native_group_norm"),
        *("native_group_norm_backward", "embedding_dense_backward", "avg_pool2d_backward"),
        *(
            "_log_softmax",
            "_softmax",
            "_foreach_norm",
            "_scaled_dot_product_flash_attention_for_cpu",
        ),
        *("_scaled_dot_product_flash_attention_for_cpu_backward", "mkldnn_rnn_layer"),
        *("mkldnn_rnn_layer_backward", "mkldnn_convolution", "nll_loss_forward"),
    }
)

KNOWN_OPS = frozenset().union(
    *(names for facts in (_WITH_SWITCH, _WITHOUT_FORM) for names in facts.values()),
    _CONVOLUTIONS,
    _PRODUCTS,
    _SUMS,
)


def explain_op(op: str, device: str, flags: Mapping[str, Any]) -> OpFact | None:
    """Return why an operation may give other bits for equal inputs; None if nothing is known.

    Args:
        op: its name, as "aten.index_add_.default"; namespace and overload may be missing.
        device: where it ran, as "cpu" or "cuda:0".
        flags: torch's switches as the recorder writes them; {} if they are unknown.

    Example:
        >>> explain_op("aten.scatter_add.default", "cuda:0", {}).has_deterministic_form
        True
        >>> explain_op("aten.scatter_add.default", "cuda", {"deterministic_algorithms": True})
    """
    name = _find_name(op)
    kind = CUDA if device.startswith(CUDA) else CPU
    switched = flags.get("deterministic_algorithms") is True
    if name in _WITH_SWITCH[kind] and not switched:
        return OpFact(name, NONDETERMINISTIC, _WITH_SWITCH[kind][name], SWITCH, True)
    if name in _WITHOUT_FORM[kind]:
        reason, advice = _WITHOUT_FORM[kind][name]
        return OpFact(name, NONDETERMINISTIC, reason, advice, False)
    if kind == CUDA:
        return _explain_library(name, flags, switched)
    if name in _CONVOLUTIONS | _PRODUCTS | _SUMS:
        reason = "its sums are split by the number of threads, and by what the processor can do"
        advice = "use the same number of threads in both runs: OMP_NUM_THREADS"
        return OpFact(name, THREADS, reason, advice, False)
    return None


def _explain_library(name: str, flags: Mapping[str, Any], switched: bool) -> OpFact | None:
    """Return what is known of an operation that cuDNN or cuBLAS performs."""
    if name in _CONVOLUTIONS:
        if flags.get("cudnn.benchmark"):
            reason = "cuDNN times its algorithms and may choose another one in each run"
            return OpFact(
                name, AUTOTUNE, reason, "set torch.backends.cudnn.benchmark = False", True
            )
        if not (switched or flags.get("cudnn.deterministic")):
            reason = "cuDNN's algorithm may add in any order"
            advice = "set torch.backends.cudnn.deterministic = True"
            return OpFact(name, NONDETERMINISTIC, reason, advice, True)
    if name in _PRODUCTS:
        reason = "cuBLAS may choose another algorithm where several streams share its workspace"
        advice = (
            "set CUBLAS_WORKSPACE_CONFIG=:4096:8 before the script starts, and "
            "call torch.use_deterministic_algorithms(True)"
        )
        return OpFact(name, NONDETERMINISTIC, reason, advice, True)
    return None


def _find_name(op: str) -> str:
    """Return the aten name without namespace, overload and the underscore of in-place forms.

    >>> _find_name("aten.index_add_.default")
    'index_add'
    """
    parts = op.removeprefix("aten.").split(".")
    return parts[0].rstrip("_")
