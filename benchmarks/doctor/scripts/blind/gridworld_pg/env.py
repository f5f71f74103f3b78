import numpy as np


class SlipperyGrid:
    """5x5 grid, goal in a corner, the agent slips sideways now and then."""
    size = 5
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def __init__(self, slip=0.2, horizon=15):
        self.slip, self.horizon = slip, horizon
        self.rng = None

    def reset(self, seed=None):
        if self.rng is None or seed is not None:
            self.rng = np.random.default_rng(seed)
        self.pos = [0, 0]
        self.t = 0
        return self._obs()

    def _obs(self):
        o = np.zeros(self.size * 2, dtype=np.float32)
        o[self.pos[0]] = 1.0
        o[self.size + self.pos[1]] = 1.0
        return o

    def step(self, action):
        if self.rng.random() < self.slip:
            action = (action + 1) % 4
        d = self.moves[action]
        self.pos = [min(max(p + q, 0), self.size - 1) for p, q in zip(self.pos, d)]
        self.t += 1
        done = self.pos == [4, 4]
        reward = 1.0 if done else -0.02
        return self._obs(), reward, done or self.t >= self.horizon
