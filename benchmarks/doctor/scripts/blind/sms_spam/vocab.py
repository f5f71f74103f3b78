class Vocab:
    PAD, UNK = 0, 1

    def __init__(self, texts):
        words = set()
        for t in texts:
            words.update(t.lower().split())
        self.stoi = {"<pad>": self.PAD, "<unk>": self.UNK}
        for w in words:
            self.stoi[w] = len(self.stoi)

    def __len__(self):
        return len(self.stoi)

    def encode(self, text, max_len):
        ids = [self.stoi.get(w, self.UNK) for w in text.lower().split()][:max_len]
        return ids + [self.PAD] * (max_len - len(ids))
