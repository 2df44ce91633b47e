"""The networks beside this file in PyTorch: the same layers, shapes, batches and optimizers, trained for some steps, on one
thread unless OMP_NUM_THREADS says otherwise. Prints the peak of resident memory over the process after the import, and the number of parameters, as JSON.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 networks.py resnet18|vit|unet|mobilenet|gru [steps]
"""
import json
import os
import re
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.mm(torch.ones(4, 4), torch.ones(4, 4))


def status(field):
    with open("/proc/self/status") as f:
        return int(re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M).group(1)) * 1024


def conv_norm(a, b, kernel, **options):
    return nn.Sequential(nn.Conv2d(a, b, kernel, bias=False, padding=(kernel - 1) // 2, **options), nn.BatchNorm2d(b))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, act=None):
        super().__init__()
        self.body, self.shortcut, self.act = body, shortcut, act

    def forward(self, x):
        y = self.body(x) + (self.shortcut(x) if self.shortcut else x)
        return self.act(y) if self.act else y


def classes(count, of):
    return (torch.arange(count) * 7) % of


def resnet18():
    def block(a, b, stride):
        body = nn.Sequential(conv_norm(a, b, 3, stride=stride), nn.ReLU(), conv_norm(b, b, 3))
        return Residual(body, None if a == b and stride == 1 else conv_norm(a, b, 1, stride=stride), F.relu)

    widths = [64, 128, 256, 512]
    stages = [nn.Sequential(block(a, b, 1 if i == 0 else 2), block(b, b, 1))
              for i, (a, b) in enumerate(zip([64] + widths, widths))]
    model = nn.Sequential(conv_norm(3, 64, 3, stride=2), nn.ReLU(), *stages,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), torch.randn(8, 3, 64, 64), classes(8, 100)


def vit():
    width, depth, heads, patches = 192, 12, 3, 36

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, heads, d // heads).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(d, 2))
            a = torch.softmax(q @ k.transpose(2, 3) / (d // heads) ** 0.5, -1)
            x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, width, 16, stride=16)
            self.position = nn.Parameter(torch.randn(patches, width) * 0.02)
            self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 100)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2) + self.position
            return self.head(self.norm(self.blocks(x)).mean(1))

    model = Vit()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)
    return model, optimizer, torch.randn(8, 3, 96, 96), classes(8, 100)


def unet():
    def pair(a, b):
        return nn.Sequential(conv_norm(a, b, 3), nn.ReLU(), conv_norm(b, b, 3), nn.ReLU())

    class Level(nn.Module):
        def __init__(self, a, width, deeper):
            super().__init__()
            self.first, self.second = pair(a, width), pair(2 * width, width)
            self.below = nn.Sequential(nn.MaxPool2d(2), level(width, deeper),
                                       nn.ConvTranspose2d(deeper[0], width, 2, stride=2))

        def forward(self, x):
            down = self.first(x)
            return self.second(torch.cat([down, self.below(down)], 1))

    def level(a, widths):
        return pair(a, widths[0]) if len(widths) == 1 else Level(a, widths[0], widths[1:])

    model = nn.Sequential(level(3, [16, 32, 64, 128, 256]), nn.Conv2d(16, 2, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3), torch.randn(2, 3, 128, 128), classes(2 * 128 * 128, 2)


def mobilenet():
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

    def block(a, b, expansion, stride):
        inner = a * expansion
        widen = [] if expansion == 1 else [conv_norm(a, inner, 1), nn.ReLU6()]
        body = nn.Sequential(*widen, conv_norm(inner, inner, 3, stride=stride, groups=inner), nn.ReLU6(),
                             conv_norm(inner, b, 1))
        return Residual(body) if a == b and stride == 1 else body

    blocks, a = [], 32
    for expansion, b, count, stride in stages:
        for i in range(count):
            blocks.append(block(a, b, expansion, stride if i == 0 else 1))
            a = b
    model = nn.Sequential(conv_norm(3, 32, 3, stride=2), nn.ReLU6(), *blocks, conv_norm(320, 1280, 1), nn.ReLU6(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 100))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), torch.randn(8, 3, 96, 96), classes(8, 100)


def gru():
    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRU(64, 256, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.cell(x)[0][:, -1])

    model = Gru()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3), torch.randn(32, 64, 64), classes(32, 10)


def loss_of(logits, y):
    if logits.dim() == 4:
        logits = logits.permute(0, 2, 3, 1).reshape(-1, logits.shape[1])
    return F.cross_entropy(logits, y)


name, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
base = status("VmRSS")
model, optimizer, x, y = {"resnet18": resnet18, "vit": vit, "unet": unet, "mobilenet": mobilenet, "gru": gru}[name]()
best = fastest = float("inf")
for _ in range(steps):
    start, spent = time.perf_counter(), time.process_time()
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
    value = loss.item()
    ms = (time.perf_counter() - start) * 1e3
    fastest = min(fastest, ms)
    best = min(best, (time.process_time() - spent) * 1e3)
print(json.dumps({
    "program": name,
    "peakRssBytes": status("VmHWM") - base,
    "parameters": sum(p.numel() for p in model.parameters()),
    "loss": value,
    "stepMs": ms,
    "bestMs": fastest,
    "bestCpuMs": best,
}))
