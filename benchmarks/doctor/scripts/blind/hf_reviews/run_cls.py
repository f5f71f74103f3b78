import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(Dataset):
    def __init__(self, n=64, length=10):
        self.rows = []
        for i in range(n):
            label = i % 2
            ids = [2] + [(i * 5 + k * (3 + label)) % 40 + 5 for k in range(length - 1)]
            self.rows.append({"input_ids": torch.tensor(ids), "attention_mask": torch.ones(length, dtype=torch.long),
                              "labels": torch.tensor(label)})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main():
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=32, max_position_embeddings=16, num_labels=2)
    model = BertForSequenceClassification(config)

    training_args = TrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        per_device_train_batch_size=16,
        learning_rate=1e-3,
        seed=42,
        data_seed=42,
        logging_steps=4,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=Reviews())
    trainer.train()
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
