import math
import multiprocessing as mp
from concurrent.futures import ThreadPoolExecutor, as_completed


def line(i):
    return " ".join("abcdefghij"[(i * 7 + k * (i % 3 + 1)) % 10] for k in range(12 + i % 9))


def featurize(i):
    s = line(i)
    vec = [0.0] * 30
    for a, b in zip(s, s[2:]):
        vec[(ord(a) * 3 + ord(b)) % 30] += 1.0
    n = math.sqrt(sum(v * v for v in vec))
    return i, [v / n for v in vec]


def length_stat(i):
    return i, len(line(i)) / 40.0


def build(n):
    with mp.get_context("fork").Pool(2) as pool:
        vecs = dict(pool.imap_unordered(featurize, range(n), chunksize=4))
    lengths = [0.0] * n
    with ThreadPoolExecutor(3) as ex:
        for fut in as_completed([ex.submit(length_stat, i) for i in range(n)]):
            i, v = fut.result()
            lengths[i] = v
    return [vecs[i] + [lengths[i]] for i in range(n)], [i % 3 for i in range(n)]
