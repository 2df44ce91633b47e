"""PyTorch's side of bench/lstm-length.ts: one training step of an LSTM on a sequence of a given length, in a process of its
own. Peak memory is VmHWM over the resident bytes after importing, as for every peer; `saved` is what autograd keeps.

    /usr/bin/python3 bench/lstm-length.py LENGTH nn|cells|checkpoint

nn is torch.nn.LSTM, cells the same loop in Python, checkpoint that loop in segments of about the square root of its turns.
"""
import json
import math
import re
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

BATCH, INPUT, HIDDEN, CLASSES = 32, 64, 256, 10
length, mode = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
torch.mm(torch.ones(4, 4), torch.ones(4, 4))


def status(name):
    with open("/proc/self/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+) kB", f.read(), re.M).group(1)) * 1024


def drawn(shape, seed, scale):
    """The numbers of bench/lstm-length.ts."""
    i = np.arange(math.prod(shape), dtype=np.uint32)
    h = (i + np.uint32(seed * 7919)) * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822519)
    h ^= h >> np.uint32(13)
    return torch.from_numpy((((h / 2**32) * 2 - 1) * scale).astype(np.float32).reshape(shape))


with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
base = status("VmRSS")
scale = 1 / math.sqrt(HIDDEN)
P = {
    "wx": drawn((INPUT, 4 * HIDDEN), 1, scale),
    "wh": drawn((HIDDEN, 4 * HIDDEN), 2, scale),
    "b": torch.zeros(4 * HIDDEN),
    "wo": drawn((HIDDEN, CLASSES), 3, scale),
    "bo": torch.zeros(CLASSES),
}
X, Y = drawn((BATCH, length, INPUT), 4, 1), torch.arange(BATCH) % CLASSES
if mode == "nn":
    lstm = torch.nn.LSTM(INPUT, HIDDEN, batch_first=True)
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(P.pop("wx").t())
        lstm.weight_hh_l0.copy_(P.pop("wh").t())
        lstm.bias_ih_l0.copy_(P.pop("b"))
        lstm.bias_hh_l0.zero_()
    lstm.bias_hh_l0.requires_grad_(False)
    P.update({k: v for k, v in lstm.named_parameters() if v.requires_grad})
params = [p.requires_grad_() for p in P.values()]
opt = torch.optim.SGD(params, lr=0.1)


def turns(h, c, part):
    for x in part:
        i, f, g, o = torch.addmm(torch.addmm(P["b"], x, P["wx"]), h, P["wh"]).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def loss_of():
    if mode == "nn":
        h = lstm(X)[0][:, -1]
    else:
        xs = X.transpose(0, 1)
        every = max(1, round(math.sqrt(length))) if mode == "checkpoint" else length
        # reentrant: of the two kinds that PyTorch has, the one that keeps less; it wants an input with a gradient
        h, c = torch.zeros(BATCH, HIDDEN, requires_grad=True), torch.zeros(BATCH, HIDDEN)
        for t in range(0, length, every):
            part = xs[t : t + every]
            h, c = checkpoint(turns, h, c, part, use_reentrant=True) if mode == "checkpoint" else turns(h, c, part)
    return F.cross_entropy(torch.addmm(P["bo"], h, P["wo"]), Y)


def step():
    opt.zero_grad(set_to_none=True)
    loss = loss_of()
    loss.backward()
    opt.step()
    return loss.item()


losses = [step()]
ms = []
for _ in range(3):
    started = time.process_time()
    losses.append(step())
    ms.append((time.process_time() - started) * 1e3)
print(json.dumps({"losses": losses, "cpuMs": statistics.median(ms), "rssBytes": status("VmHWM") - base}))
