import collections
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

Transition = collections.namedtuple("Transition", ("state", "action", "next_state", "reward"))


class Walk:
    """Walk on a line of 9 cells to the goal on the right, from a place on the left."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.pos = self.rng.uniform(0, 4)
        return self._obs()

    def _obs(self):
        near = 1 - np.abs(np.arange(9) - self.pos)
        return np.maximum(near, 0).astype(np.float32)

    def step(self, action):
        self.pos = max(0, min(8, self.pos + (1 if action else -1)))
        done = self.pos > 7.5
        return self._obs(), 1.0 if done else -0.01, done


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = collections.deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, s):
        return self.net(s)


def select_action(policy, state, eps):
    if random.random() > eps:
        with torch.no_grad():
            return int(policy(torch.from_numpy(state)).argmax())
    return random.randrange(2)


def optimize(policy, target, memory, optimizer, batch=16, gamma=0.95):
    if len(memory) < batch:
        return None
    b = Transition(*zip(*memory.sample(batch)))
    s = torch.from_numpy(np.stack(b.state))
    s2 = torch.from_numpy(np.stack(b.next_state))
    a = torch.tensor(b.action)[:, None]
    r = torch.tensor(b.reward, dtype=torch.float32)
    q = policy(s).gather(1, a).squeeze(1)
    with torch.no_grad():
        q2 = target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q, r + gamma * q2)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    SEED = 5
    random.seed(SEED)
    torch.manual_seed(SEED)
    env = Walk(SEED)
    policy, target = QNet(), QNet()
    target.load_state_dict(policy.state_dict())
    optimizer = optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    memory = ReplayMemory(500)
    steps = 0
    for episode in range(3):
        state, total = env.reset(), 0.0
        for t in range(14):
            action = select_action(policy, state, eps=0.5)
            nxt, reward, done = env.step(action)
            memory.push(state, action, nxt, reward)
            state, total = nxt, total + reward
            if optimize(policy, target, memory, optimizer) is not None:
                steps += 1
            for k, v in target.state_dict().items():
                v.lerp_(policy.state_dict()[k], 0.05)
            if done:
                break
        print("episode", episode, "reward %.2f" % total, "updates", steps)
    torch.save({"policy": policy.state_dict(), "target": target.state_dict()}, "model.pt")
