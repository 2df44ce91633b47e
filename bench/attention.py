"""The shapes of bench/attention.ts in PyTorch, on one thread: softmax(q kT / sqrt(d) + mask) v, forward, and forward and backward.
Processor time of the fastest of several runs, in ms.

  python3 bench/attention.py [--positions 512,1024,2048,4096,8192] [--heads 2] [--width 64] [--seconds 6]
"""
import argparse
import math
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--positions", default="512,1024,2048,4096,8192")
parser.add_argument("--heads", type=int, default=2)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--seconds", type=float, default=6)
given = parser.parse_args()
torch.set_num_threads(1)


def attention(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ v


def fastest(run):
    run()
    best, end = math.inf, time.monotonic() + given.seconds / 2
    while time.monotonic() < end:
        before = time.process_time()
        run()
        best = min(best, time.process_time() - before)
    return 1000 * best


print(f"PyTorch {torch.__version__}: positions, forward ms, forward and backward ms")
for positions in map(int, given.positions.split(",")):
    for causal in (True, False):
        torch.manual_seed(0)
        q, k, v, w = (torch.randn(given.heads, positions, given.width) for _ in range(4))
        leaves = [x.requires_grad_() for x in (q, k, v)]
        full = torch.full((positions, positions), -math.inf)
        mask = torch.triu(full, 1) if causal else None

        def forward():
            with torch.no_grad():
                attention(q, k, v, mask)

        def both():
            torch.autograd.grad((attention(q, k, v, mask) * w).sum(), leaves)

        text = f"{positions} {'causal' if causal else 'full'}"
        print(f"{text:12} {fastest(forward):9.1f} {fastest(both):9.1f}", flush=True)
