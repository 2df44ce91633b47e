"""Steps that look rows of large tables up, in PyTorch with sparse gradients: the same programs as tables.mjs, one thread. Prints
the least processor time of a step in ms as JSON.

    OMP_NUM_THREADS=1 python3 tables.py word2vec|bag sgd|adagrad|adam [seconds]
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
name, optimizer_name = sys.argv[1], sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
ROWS, WIDTH, BATCH, NEGATIVES, BAG, CLASSES = 50_000, 128, 1024, 5, 16, 10


def ids(shape, by):
    count = 1
    for n in shape:
        count *= n
    return ((torch.arange(count) * 7919 * by) % ROWS).reshape(shape)


def table():
    made = nn.Embedding(ROWS, WIDTH, sparse=True)
    with torch.no_grad():
        made.weight.mul_(0.1)
    return made


if name == "word2vec":
    centers, contexts = table(), table()
    sparse, other = [centers.weight, contexts.weight], []
    c, o, n = ids([BATCH], 1), ids([BATCH], 3), ids([BATCH, NEGATIVES], 5)

    def loss_of():
        u = centers(c)
        near = F.softplus(-(u * contexts(o)).sum(1)).sum()
        return near + F.softplus((u[:, None] * contexts(n)).sum(2)).sum()
else:
    bag = nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True)
    with torch.no_grad():
        bag.weight.mul_(0.1)
    linear = nn.Linear(WIDTH, CLASSES)
    sparse, other = [bag.weight], list(linear.parameters())
    words, y = ids([BATCH, BAG], 1), torch.arange(BATCH) % CLASSES

    def loss_of():
        return F.cross_entropy(linear(bag(words)), y)

make = {
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "adagrad": (lambda p: torch.optim.Adagrad(p, lr=0.1), lambda p: torch.optim.Adagrad(p, lr=0.1)),
    "adam": (lambda p: torch.optim.SparseAdam(p, lr=0.001), lambda p: torch.optim.Adam(p, lr=0.001)),
}[optimizer_name]
optimizers = [make[0](sparse)] + ([make[1](other)] if other else [])
best, end, steps = float("inf"), time.perf_counter() + seconds, 0
while steps < 5 or time.perf_counter() < end:
    start = time.process_time()
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss = loss_of()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    value = loss.item()
    if steps > 1:
        best = min(best, (time.process_time() - start) * 1e3)
    steps += 1
print(json.dumps({"ms": best, "loss": value}))
