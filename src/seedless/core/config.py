"""The configuration of a run: frozen, typed, and strict about its keys.

config = parse_config({"train": {"epochs": 2}})
config = override(config, ["init.basis=dct", "order.batch_size=64"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seedless.core.bounded_reading import parse_toml, shorten
from seedless.core.digests import digest_value
from seedless.core.errors import ConfigError, RunError
from seedless.core.registry import suggest

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
FILE_KEYS = ("weights", "weights_digest", "reinitialize")  # of `init`, for weights of a file

_SHOWN_PROBLEMS = 10  # of a configuration that has many

SEED_KEYS = ("init.seed", "order.seed")  # None in a run that needs no seed
REPLICATE_KEYS = (*SEED_KEYS, "order.offset", "init.offset")  # replicates of an arm may differ here


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


class Config(Section):
    """The configuration of a run: one section for each of its parts.

    Example: ``Config().change(train={"epochs": 2}).train.epochs == 2``.
    """

    data: DataConfig = DataConfig()
    augment: AugmentConfig = AugmentConfig()
    model: ModelConfig = ModelConfig()
    init: InitConfig = InitConfig()
    order: OrderConfig = OrderConfig()
    loss: LossConfig = LossConfig()
    train: TrainConfig = TrainConfig()
    execution: ExecutionConfig = ExecutionConfig()
    control: ControlConfig = ControlConfig()

    def identity(self) -> dict[str, Any]:
        """Return every setting that can change a bit: all but the places of data and weights.

        Data and weights are identified by their digests.
        """
        values = self.model_dump()
        for key in ("path", "cache", "verify"):
            del values["data"][key]
        values["data"]["name"] = Path(self.data.name).name
        if self.data.repeated is None:  # so that digests from before this setting stay valid
            del values["data"]["repeated"]
        # In portable arithmetic the device cannot change a bit. In native arithmetic, the default,
        # the key is left out so that digests from before there was a choice stay valid.
        inert = ("device", "mode", "threads") if self.is_portable else ("arithmetic",)
        for key in (*inert, "timeout"):
            del values["execution"][key]
        # Most starts have no offset: leaving 0 out keeps the digests from before there was one.
        if self.init.offset == 0:
            del values["init"]["offset"]
        for key in FILE_KEYS:  # the same, for runs that take no weights from a file
            if key == "weights" or values["init"][key] is None:
                del values["init"][key]
        return values

    @property
    def is_portable(self) -> bool:
        """Whether the bits depend on the data and the settings alone, not on the device."""
        return self.execution.arithmetic == "portable"

    @property
    def digest(self) -> str:
        """The digest of the identity, defaults included."""
        return digest_value(self.identity())

    def change(self, **sections: Mapping[str, Any]) -> Config:
        """Return the configuration with some settings of some sections changed, checked again."""
        values = self.model_dump()
        for section, settings in sections.items():
            values[section].update(settings)
        return parse_config(values)

    def to_toml(self) -> str:
        """Return the configuration as the text of a TOML file, without settings that are None."""
        import tomli_w

        return tomli_w.dumps(
            {
                section: {key: value for key, value in settings.items() if value is not None}
                for section, settings in self.model_dump().items()
            }
        )


def parse_config(values: Mapping[str, Any], source: str = "configuration") -> Config:
    """Return a checked configuration; an unknown key is an error that names the nearest one."""
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors()
        problems = "; ".join(_explain(item) for item in found[:_SHOWN_PROBLEMS])
        more = f"; and {len(found) - _SHOWN_PROBLEMS} more" * (len(found) > _SHOWN_PROBLEMS)
        raise ConfigError(f"{source}: {problems}{more}") from None


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values by dotted key; the items of a list of mappings have their index as key.

    >>> flatten({"init": {"basis": "dct"}, "devices": [{"name": "cpu"}]})
    {'init.basis': 'dct', 'devices.0.name': 'cpu'}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            value = {str(place): item for place, item in enumerate(value)}
        if isinstance(value, Mapping):
            flat |= {f"{key}.{below}": item for below, item in flatten(value).items()}
        else:
            flat[key] = value
    return flat


def override(config: Config, settings: Iterable[str]) -> Config:
    """Return the configuration with some settings changed, such as "init.residual_scale=0.42".

    A value is read as TOML (numbers, true, false, quoted text), or else as plain text.

    Example: ``override(config, ["init.basis=dct", "order.batch_size=64"])``.
    """
    values = config.model_dump()
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"expected a setting such as init.basis=dct, got {setting!r}")
        *tables, last = key.strip().split(".")
        target: Any = values
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise ConfigError(f"{key.strip()!r} goes below {table!r}, which is a single value")
        target[last] = _read_value(text.strip())
    return parse_config(values, source="--set")


def _read_value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}".encode(), "--set")["value"]
    except RunError:
        return text


def _explain(error: Any) -> str:
    """Return one of pydantic's errors as text: the key, what was expected, what was found."""
    *path, last = [shorten(str(part)) for part in error["loc"]] or [""]
    where = ".".join([*path, last])
    if error["type"] == "extra_forbidden":
        known = [".".join([*path, name]) for name in _keys_at(path)]
        sections = [] if path else [name for name in known if where in _keys_at([name])]
        if sections:
            meant = " or ".join(repr(f"{name}.{where}") for name in sections)
            return f"unknown key {where!r} (did you mean {meant}?)"
        return f"unknown key {where!r}{suggest(where, known)}; known: {', '.join(known)}"
    message = error["msg"][:1].lower() + error["msg"][1:]
    return f"{where}: {message}, got {shorten(repr(error['input']))}"


def _keys_at(path: list[str]) -> list[str]:
    table: Any = Config
    for part in path:
        table = table.model_fields[part].annotation
    return sorted(table.model_fields)
