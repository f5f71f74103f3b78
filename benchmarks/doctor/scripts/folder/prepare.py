"""Write data/<class>/<name>.npy"""
import os
import sys

import numpy as np


def main(root="data", n=20):
    rng = np.random.RandomState(99)
    for c, name in enumerate(["ant", "bee", "wasp"]):
        os.makedirs(os.path.join(root, name), exist_ok=True)
        for i in range(n):
            img = rng.rand(3, 10, 10).astype(np.float32)
            img[c] += 0.7
            np.save(os.path.join(root, name, "%s_%02d.npy" % (name, i)), img)


if __name__ == "__main__":
    main(*sys.argv[1:])
