import zlib

POS = "great lovely superb warm funny clever moving bright".split()
NEG = "dull awful weak cold boring messy slow grim".split()
NEUTRAL = "film plot actor scene story music ending cast".split()


def reviews(n=120):
    for i in range(n):
        label = i % 2
        bank = POS if label else NEG
        yield f"{NEUTRAL[i % 8]} {bank[i * 3 % 8]} {NEUTRAL[i * 5 % 8]} {bank[(i + i // 8) % 8]}", label


def vocabulary(texts):
    seen = {w for t in texts for w in t.split()}
    return {w: i for i, w in enumerate(sorted(seen))}


def in_validation(text):
    return zlib.crc32(text.encode()) % 5 == 0


def lookup_cost(texts):
    distinct = set(texts)
    return sum(hash(t) % 1000 for t in distinct) / len(distinct)
