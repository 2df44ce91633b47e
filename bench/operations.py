"""Operations one by one with PyTorch: the other half of operations.mjs. Prints the least
processor time of a step of each in ms, as JSON."""

import json
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
seconds, wanted = float(sys.argv[1]), sys.argv[2:]


def ids(count, below):
    return torch.arange(count) * 7919 % below


OPERATIONS = {
    "sum of rows": (lambda x: x.sum(1), [[2048, 1024]]),
    "sum of columns": (lambda x: x.sum(0), [[2048, 1024]]),
    "largest of rows": (lambda x: x.max(1)[0], [[2048, 1024]]),
    "running sum of rows": (lambda x: x.cumsum(1), [[2048, 1024]]),
    "running sum of columns": (lambda x: x.cumsum(0), [[2048, 1024]]),
    "softmax": (lambda x: F.softmax(x, 1), [[2048, 1024]]),
    "cross-entropy": (lambda x, y: F.cross_entropy(x, y), [[2048, 1024]], [ids(2048, 1024)]),
    "layer norm": (lambda x, a, b: F.layer_norm(x, (1024,), a, b), [[2048, 1024], [1024], [1024]]),
    "gelu": (F.gelu, [[2048, 1024]]),
    "transposition": (lambda x: x.t().contiguous().tanh(), [[2048, 1024]]),
    "bias and relu": (lambda x, b: F.relu(x + b), [[2048, 1024], [1024]]),
    "embedding": (lambda w, i: F.embedding(i, w), [[10000, 256]], [ids(4096, 10000)]),
    "max pool 2 × 2": (lambda x: F.max_pool2d(x, 2), [[16, 64, 56, 56]]),
    "mean pool 2 × 2": (lambda x: F.avg_pool2d(x, 2), [[16, 64, 56, 56]]),
    "max pool 3 × 3, stride 2": (lambda x: F.max_pool2d(x, 3, stride=2, padding=1), [[16, 64, 56, 56]]),
    "convolution 3 × 3": (lambda x, w: F.conv2d(x, w, padding=1), [[8, 64, 28, 28], [64, 64, 3, 3]]),
    "convolution 1 × 1": (lambda x, w: F.conv2d(x, w), [[8, 256, 28, 28], [64, 256, 1, 1]]),
    "convolution 7 × 7, stride 2": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=3),
        [[4, 3, 112, 112], [64, 3, 7, 7]],
    ),
    "convolution of each channel": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=64),
        [[8, 64, 56, 56], [64, 1, 3, 3]],
    ),
    "convolution in one dimension": (lambda x, w: F.conv1d(x, w, padding=2), [[8, 64, 512], [64, 64, 5]]),
    "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [[8, 64, 14, 14], [64, 32, 2, 2]]),
    "4,096 products 8 × 8": (torch.matmul, [[4096, 8, 8], [4096, 8, 8]]),
    "vector × matrix": (torch.matmul, [[1, 1024], [1024, 1024]]),
    "vector × transposed matrix": (lambda x, w: x @ w.t(), [[1, 1024], [1024, 1024]]),
    "matrix × 4 columns": (torch.matmul, [[4096, 512], [512, 4]]),
    "attention": (
        lambda q, k, v: torch.matmul(
            F.softmax(torch.matmul(q, k.transpose(1, 2)) / 32**0.5 + MASK, 2), v
        ),
        [[16, 512, 32], [16, 512, 32], [16, 512, 32]],
    ),
}
MASK = torch.full((512, 512), float("-inf")).triu(1)


def measure(operation, shapes, inputs=()):
    params = [(torch.rand(shape) - 0.5).requires_grad_() for shape in shapes]
    best, turns, end = float("inf"), 0, time.perf_counter() + seconds
    while turns < 4 or time.perf_counter() < end:
        started = time.process_time()
        for p in params:
            p.grad = None
        operation(*params, *inputs).square().sum().backward()
        with torch.no_grad():
            for p in params:
                p.sub_(p.grad, alpha=1e-6)
        if turns > 0:
            best = min(best, time.process_time() - started)
        turns += 1
    return best * 1000


print(json.dumps({name: measure(*OPERATIONS[name]) for name in wanted}))
