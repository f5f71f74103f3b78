import math
from multiprocessing import get_context


def read_document(doc_id):
    topic = doc_id % 3
    words = [(doc_id * 31 + k * (topic + 2)) % 40 for k in range(300 + 40 * (doc_id % 7))]
    return topic, words


def tfidf_row(doc_id):
    topic, words = read_document(doc_id)
    row = [0.0] * 40
    for rep in range(6):
        for w in words:
            row[w] += math.log1p(words.count(w)) / len(words)
    norm = math.sqrt(sum(v * v for v in row))
    return [v / norm for v in row], topic


def build_matrix(n_docs, workers):
    rows, labels = [], []
    with get_context("fork").Pool(workers) as pool:
        for row, topic in pool.imap_unordered(tfidf_row, range(n_docs)):
            rows.append(row)
            labels.append(topic)
    return rows, labels
