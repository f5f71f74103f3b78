from pathlib import Path

import torch


class CheckpointManager:
    def __init__(self, folder="checkpoints"):
        self.path = Path(folder) / "last.pth"
        self.path.parent.mkdir(exist_ok=True)

    def restore(self, model, opt):
        try:
            state = torch.load(self.path)
        except FileNotFoundError:
            return
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])

    def save(self, model, opt):
        torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, self.path)
