import torch.nn as nn


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class SmallCNN(nn.Module):
    def __init__(self, width=8, num_classes=4):
        super().__init__()
        self.features = nn.Sequential(
            ConvBlock(1, width), nn.MaxPool2d(2),
            ConvBlock(width, width * 2), nn.AdaptiveAvgPool2d(1),
        )
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width * 2, num_classes)

    def forward(self, x):
        x = self.features(x).flatten(1)
        return self.head(self.drop(x))
