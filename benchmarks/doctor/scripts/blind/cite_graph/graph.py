import math


class Paper:
    __slots__ = ("index", "topic", "features", "cites")

    def __init__(self, index, topic):
        self.index = index
        self.topic = topic
        self.features = [math.sin(index * (k + 1) * 0.7 + topic) for k in range(8)]
        self.cites = []


def build(n=120):
    papers = [Paper(i, (i * 7 + i // 9) % 3) for i in range(n)]
    for p in papers:
        for step in (3, 6, 11):
            q = papers[(p.index + step) % n]
            if q.topic == p.topic or step == 11:
                p.cites.append(q)
    return papers


def scatter_order(papers):
    """Cheap multiplicative hash so that neighbours land in different batches."""
    return sorted(papers, key=lambda p: (id(p) * 2654435761) % 2 ** 32)


def minibatches(papers, size):
    order = scatter_order(papers)
    for s in range(0, len(order), size):
        yield [p.index for p in order[s:s + size]]
