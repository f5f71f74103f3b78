import itertools

SUBJECTS = "the cat,a small dog,my neighbour,the old captain,our teacher,nobody".split(",")
VERBS = "sees,paints,carries,repairs,forgets,sells".split(",")
OBJECTS = "the red boat,a letter,two apples,the kitchen door,some music,an umbrella".split(",")


def sentences():
    return [" ".join(p) for p in itertools.product(SUBJECTS, VERBS, OBJECTS)]


class Vocab:
    def __init__(self, words):
        self.itos = ["<pad>", "<s>"] + sorted(set(words))
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def encode(self, text):
        return [self.stoi["<s>"]] + [self.stoi[w] for w in text.split()]

    def __len__(self):
        return len(self.itos)
