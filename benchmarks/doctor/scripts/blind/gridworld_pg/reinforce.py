import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

from env import SlipperyGrid

parser = argparse.ArgumentParser(description="REINFORCE example")
parser.add_argument("--gamma", type=float, default=0.98)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=30)
args = parser.parse_args()

torch.manual_seed(args.seed)
np.random.seed(args.seed)
env = SlipperyGrid()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(10, 24)
        self.affine2 = nn.Linear(24, 4)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    m = Categorical(policy(torch.from_numpy(state)))
    a = m.sample()
    policy.saved_log_probs.append(m.log_prob(a))
    return a.item()


def finish_episode():
    R, returns = 0.0, []
    for r in reversed(policy.rewards):
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.stack([-lp * R for lp, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del policy.saved_log_probs[:], policy.rewards[:]


def main():
    running = 0.0
    for ep in range(args.episodes):
        state, total = env.reset(), 0.0
        while True:
            state, reward, done = env.step(select_action(state))
            policy.rewards.append(reward)
            total += reward
            if done:
                break
        running = 0.95 * running + 0.05 * total
        finish_episode()
        if ep % 10 == 0:
            print(f"Episode {ep}\tLast reward: {total:.2f}\tAverage reward: {running:.2f}")
    torch.save(policy.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
