"""The sections of a configuration: every setting with its type, its limits and its default.

`setting_texts.py` has one sentence on each setting, for users. `config.py` joins the sections.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# A setting may come from someone else's run. The largest values cost little to check, and the
# largest networks they describe fit into memory.
MAX_EPOCHS = 1_000_000
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Channels = Annotated[int, Field(ge=1, le=1024)]
Classes = Annotated[int, Field(ge=1, le=10_000)]
StepNumber = Annotated[int, Field(ge=0, le=2**62)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Positive = Annotated[float, Field(gt=0)]
FLOAT32_MAX = (2 - 2**-23) * 2.0**127
PositiveFloat32 = Annotated[float, Field(gt=0, le=FLOAT32_MAX)]  # torch reads it as float32
NamePattern = Annotated[str, Field(min_length=1, max_length=200)]
DIGEST = "^sha256:[0-9a-f]{64}$"
FILE_KEYS = ("weights", "weights_digest", "reinitialize")  # of `init`, for a weights file


class Section(BaseModel):
    """A table of the configuration: immutable, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class DataConfig(Section):
    """Which samples. A setting that a dataset does not have is refused, not ignored.

    `path` is the folder or file of a dataset that is not computed; `name` may itself be an .npz.
    `normalize`: global, lead, pixels or none; by default pixels for images of bytes, else
    global.
    `verify` compares every sample of a cached copy with its digest. `test_fold` and `val_fold`
    choose other folds than 10 and 9 of a dataset with ten folds; the other eight train.
    `repeated`: how many records may be in two splits, for data of which the catalog has no count.
    """

    name: str = "simulated"
    path: str | None = None
    preset: str | None = None
    records: Count | None = None
    task: str | None = None
    leads: str | None = None
    lead_map: dict[str, str] | None = None
    fs: Count | None = None
    short: str | None = None
    skip: list[str] | None = None
    size: Count | None = None
    channels: Channels | None = None
    classes: Classes | None = None
    normalize: str | None = None
    test_fold: Annotated[int, Field(ge=1, le=10)] | None = None
    val_fold: Annotated[int, Field(ge=1, le=10)] | None = None
    repeated: Count | None = None
    cache: bool = True
    verify: bool = False


class ModelConfig(Section):
    """Which network. `leads` belongs to ECG models, `channels` to image models."""

    name: str = "conformer"
    leads: Channels | None = None
    channels: Channels | None = None
    classes: Classes | None = None
    small: bool = False


class InitConfig(Section):
    """How the weights are initialized: by a start of `initialize`, or from a file.

    Only the random controls have a `seed`, and only starts drawn without a seed have an `offset`.
    `weights` is a safetensors file that the run begins with. `weights_digest`, its SHA-256, is
    filled in from the file, or demanded of it. `reinitialize` lists patterns of names, such as
    "head.*": these tensors are not taken from the file but started by `basis`.
    """

    basis: str = "mixed"
    residual_scale: Annotated[float, Field(ge=0)] | None = None
    heads: str | None = None
    seed: Seed | None = None
    offset: Seed = 0
    weights: str | None = None
    weights_digest: Annotated[str, Field(pattern=DIGEST)] | None = None
    reinitialize: Annotated[list[NamePattern], Field(min_length=1, max_length=100)] | None = None

    def start(self) -> dict[str, Any]:
        """Return the settings that are the arguments of `initialize`."""
        return self.model_dump(exclude={*FILE_KEYS})


class OrderConfig(Section):
    """The order of the training samples. Only the seeded control has a `seed`."""

    name: str = "content"
    batch_size: Count = 128
    offset: StepNumber = 0
    seed: Seed | None = None
    keep_unlabelled: bool = False


class AugmentConfig(Section):
    """Shifts of training images by up to `padding` pixels, and mirroring. ECGs have neither."""

    padding: Annotated[int, Field(ge=0, le=256)] = 0
    flip: bool = False


class LossConfig(Section):
    """The loss. `name`: bce or cross_entropy; by default bce for multi-label, else cross_entropy.

    `class_weights` "sqrt" gives positives of class k the weight sqrt(N / N_k), in both losses.
    `clamp` limits logits to [-clamp, clamp]. If a model has more features than classes,
    `spare_penalty` (0.01 by default) times the mean square of the additional ones is added.
    """

    name: str | None = None
    class_weights: str = "none"
    clamp: PositiveFloat32 | None = None
    spare_penalty: Annotated[float, Field(ge=0)] | None = None


class TrainConfig(Section):
    """Epochs, optimizer and learning rate, and how often a run is evaluated and saved.

    The learning rate falls by a cosine from epoch to epoch (`decay` "cosine") or is constant
    ("none"); over the first `warmup_steps` steps it rises linearly. `microbatch`: the gradient of a
    batch is accumulated over parts of this many samples. A run whose final score is at or below
    `converged_above` is marked as not converged. With `guard` "report", a run whose model uses a
    global random generator continues, and its receipt says that repeating bits are not promised.
    """

    epochs: Annotated[int, Field(ge=1, le=MAX_EPOCHS)] = 85
    optimizer: str = "adam"
    rate: PositiveFloat32 = 1e-3
    decay: str = "cosine"
    warmup_steps: StepNumber = 0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    clip_norm: Positive | None = None
    microbatch: Count | None = None
    evaluate_every: Count = 10
    evaluate_batch: Count = 256
    checkpoint_every: Count = 10
    converged_above: Annotated[float, Field(ge=0, lt=1)] = 0.6
    guard: str = "refuse"


class ExecutionConfig(Section):
    """The device, precision and arithmetic. `threads`: by default all available cores.

    `device`: cpu, cuda, or auto: a GPU if there is one. `mode`: eager, graph (a step as one CUDA
    graph, with the bits of eager), compiled (fused kernels, which have their own bits), or auto:
    graph on a GPU, else eager. `precision`: fp32, tf32 (matrix products on a GPU) or bf16
    (autocast). `storage` of the samples: float32 on the device, float16 there, or float32 on the
    host. `arithmetic`: native, that of the device and its libraries, or portable, which is slower
    and has the same bits on every processor and on every number of processes. `timeout`: how many
    seconds processes wait for each other before they give up, 600 by default.
    """

    arithmetic: str = "native"
    device: str = "auto"
    mode: str = "auto"
    precision: str = "fp32"
    storage: str = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    timeout: Count | None = None


class ControlConfig(Section):
    """Negative controls: change a run on purpose, to show that the change is detected.

    `flip_bit` "PARAMETER:ELEMENT:BIT" flips one bit of one weight before step `at_step`, which
    counts from 0.
    """

    flip_bit: str | None = None
    at_step: StepNumber = 0
