import json
import os


class LabelStore:
    """Indices that the annotators have already labelled."""

    def __init__(self, path="labelled.json"):
        self.path = path
        if os.path.exists(path):
            self.indices = json.load(open(path))
        else:
            self.indices = list(range(0, 400, 20))

    def add(self, new):
        self.indices.extend(int(i) for i in new)
        with open(self.path, "w") as f:
            json.dump(self.indices, f)
