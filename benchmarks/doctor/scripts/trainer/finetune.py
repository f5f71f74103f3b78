import argparse
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

POSITIVE = "good great lovely fine happy superb".split()
NEGATIVE = "bad awful poor sad broken dull".split()
FILLER = "the film was really quite a thing and we saw it".split()


def build_reviews(n=64):
    rng = random.Random(0)
    rows = []
    for i in range(n):
        label = i % 2
        words = rng.sample(FILLER, 6) + rng.sample(POSITIVE if label else NEGATIVE, 2)
        rng.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


def build_vocab(rows):
    tokens = sorted({w for text, _ in rows for w in text.split()})
    return {w: i + 1 for i, w in enumerate(tokens)}


class ReviewDataset(Dataset):
    def __init__(self, rows, vocab, word_dropout=0.1):
        self.rows = rows
        self.vocab = vocab
        self.word_dropout = word_dropout

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        ids = [self.vocab[w] for w in text.split()]
        ids = [0 if random.random() < self.word_dropout else t for t in ids]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(label)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--output_dir", default="out")
    ap.add_argument("--max_steps", type=int, default=8)
    ap.add_argument("--seed", type=int, default=42)
    args = ap.parse_args()

    set_seed(args.seed)
    rows = build_reviews()
    vocab = build_vocab(rows)
    config = BertConfig(
        vocab_size=len(vocab) + 1,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
    )
    model = BertForSequenceClassification(config)
    training_args = TrainingArguments(
        output_dir=args.output_dir,
        per_device_train_batch_size=8,
        max_steps=args.max_steps,
        learning_rate=5e-4,
        logging_steps=2,
        save_strategy="no",
        report_to="none",
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        seed=args.seed,
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=ReviewDataset(rows, vocab))
    result = trainer.train()
    print(result.metrics)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
