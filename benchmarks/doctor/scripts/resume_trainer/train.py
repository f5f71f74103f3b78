import argparse
import os

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint, set_seed


class Sentences(Dataset):
    def __init__(self, mask):
        g = torch.Generator().manual_seed(0)
        self.tokens = torch.randint(5, 60, (80, 12), generator=g)
        self.labels = (self.tokens.float().mean(1) > 32).long()
        self.mask = mask

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        tokens = self.tokens[i]
        if self.mask:
            tokens = torch.where(torch.rand(len(tokens)) < self.mask, 1, tokens)
        return {"input_ids": tokens, "labels": self.labels[i]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--save-steps", type=int, default=4)
    parser.add_argument("--mask", type=float, default=0.0)
    args = parser.parse_args()

    set_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    training_args = TrainingArguments(
        output_dir=args.out,
        num_train_epochs=3,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        save_steps=args.save_steps,
        seed=0,
        use_cpu=True,
        report_to=[],
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training_args,
        train_dataset=Sentences(args.mask),
    )
    last = get_last_checkpoint(args.out) if os.path.isdir(args.out) else None
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main()
