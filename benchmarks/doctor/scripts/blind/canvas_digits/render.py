import numpy as np

GLYPHS = {
    0: ["111", "101", "101", "101", "111"],
    1: ["010", "110", "010", "010", "111"],
    2: ["111", "001", "111", "100", "111"],
    7: ["111", "001", "010", "010", "010"],
}


def draw(digit, dx, dy, size=20, zoom=2):
    canvas = np.empty((size, size), dtype=np.uint8)
    glyph = np.array([[int(c) for c in row] for row in GLYPHS[digit]], dtype=np.uint8) * 255
    glyph = glyph.repeat(zoom, 0).repeat(zoom, 1)
    h, w = glyph.shape
    canvas[dy:dy + h, dx:dx + w] = glyph
    return canvas


def make_set(n=200):
    digits = sorted(GLYPHS)
    images, labels = [], []
    for i in range(n):
        c = i % len(digits)
        images.append(draw(digits[c], dx=i * 3 % 13, dy=i * 5 % 9))
        labels.append(c)
    return images, labels
