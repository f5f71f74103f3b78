import random

import numpy as np


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class RandomFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        if random.random() < self.p:
            return img[:, ::-1]
        return img


class RandomCrop:
    def __init__(self, size, pad=2):
        self.size = size
        self.pad = pad

    def __call__(self, img):
        img = np.pad(img, self.pad)
        top = np.random.randint(0, 2 * self.pad + 1)
        left = np.random.randint(0, 2 * self.pad + 1)
        return img[top : top + self.size, left : left + self.size]


class GaussianNoise:
    def __init__(self, sigma=0.1):
        self.sigma = sigma
        self.rng = np.random.default_rng(7)

    def __call__(self, img):
        return img + self.rng.normal(0.0, self.sigma, img.shape)


class ToFloat:
    def __call__(self, img):
        return np.ascontiguousarray(img, dtype=np.float32)
