"""The TreeLSTM of bench/tape.ts in PyTorch, one tree at a time on one thread: milliseconds for loss and gradients.

    python3 bench/tape-tree.py"""
import random
import time

import torch

WIDTH = 256
torch.set_num_threads(1)
random.seed(1)
torch.manual_seed(1)


def weights(*shape):
    return (torch.randn(*shape) * 0.05).requires_grad_()


leaf_w, leaf_b = weights(WIDTH, 3 * WIDTH), weights(3 * WIDTH)
inner_w, inner_b = weights(2 * WIDTH, 5 * WIDTH), weights(5 * WIDTH)
params = [leaf_w, leaf_b, inner_w, inner_b]


def leaf_cell(x):
    i, o, u = (x @ leaf_w + leaf_b).split(WIDTH, 1)
    c = torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(c), c


def inner_cell(left, right):
    i, f, g, o, u = (torch.cat([left[0], right[0]], 1) @ inner_w + inner_b).split(WIDTH, 1)
    c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f) * left[1] + torch.sigmoid(g) * right[1]
    return torch.sigmoid(o) * torch.tanh(c), c


def random_tree(leaves):
    if leaves == 1:
        return None
    left = random.randint(1, leaves - 1)
    return random_tree(left), random_tree(leaves - left)


def state(tree, words):
    if tree is None:
        return leaf_cell(next(words))
    left = state(tree[0], words)
    return inner_cell(left, state(tree[1], words))


words = [torch.randn(1, WIDTH) for _ in range(25)]
times = []
for _ in range(40):
    tree = random_tree(25)
    start = time.perf_counter()
    h, _ = state(tree, iter(words))
    torch.autograd.grad((h * h).sum(), params)
    times.append(1000 * (time.perf_counter() - start))
times.sort()
print(f"median {times[20]:.1f} ms, best {times[0]:.1f} ms")
