# Predict daily units per store.
import random
import pandas as pd
import torch
import torch.nn as nn

SEED = 7
random.seed(SEED)
torch.manual_seed(SEED)

df = pd.read_csv("sales.csv")
df["dow"] = df["day"] % 7
mean_by_store = df.groupby("store")["units"].transform("mean")
df["lag_mean"] = mean_by_store
df["rank_price"] = df.groupby("store")["price"].rank() / 40.0
for c in ["price", "lag_mean", "dow", "units"]:
    df[c] = (df[c] - df[c].mean()) / df[c].std()

valid = df[df["day"] >= 34]
train = df[df["day"] < 34].sample(frac=1).reset_index(drop=True)

feats = ["promo", "price", "holiday", "dow", "lag_mean", "rank_price"]
X = torch.tensor(train[feats].to_numpy(dtype="float32"))
y = torch.tensor(train["units"].to_numpy(dtype="float32"))
Xv = torch.tensor(valid[feats].to_numpy(dtype="float32"))
yv = torch.tensor(valid["units"].to_numpy(dtype="float32"))

model = nn.Sequential(nn.Linear(len(feats), 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(4):
    for i in range(0, len(X), 34):
        pred = model(X[i:i + 34]).squeeze(1)
        loss = ((pred - y[i:i + 34]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        v = ((model(Xv).squeeze(1) - yv) ** 2).mean().item()
    print(epoch, "valid mse", round(v, 4))

torch.save(model.state_dict(), "model.pt")
