from dataclasses import dataclass, field


@dataclass
class ModelConfig:
    dim: int = 10
    experts: int = 4
    k: int = 2
    noise: float = 1.0


@dataclass
class TrainConfig:
    seed: int = 17
    steps: int = 20
    batch: int = 48
    lr: float = 1e-2
    model: ModelConfig = field(default_factory=ModelConfig)
