"""What PyTorch's autograd saves for small programs: bytes of distinct storages that saved_tensors_hooks sees, without arguments.

    python3 bench/tape-saves.py

prints one JSON object. src/tape/account.test.ts has the same programs and these numbers."""
import json

import torch

torch.manual_seed(0)


def saved_bytes(fn, *args):
    own = {a.storage().data_ptr() for a in args}
    seen = {}

    def pack(t):
        s = t.storage()
        if s.data_ptr() not in own and t.dim() > 0:  # plain numbers are no values of the program
            seen[s.data_ptr()] = (s.nbytes(), t)  # held, so that no other storage gets the address
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        fn(*args)
    return sum(n for n, _ in seen.values())


def p(*shape):
    return torch.rand(*shape).add(0.1).requires_grad_()


def mlp(w1, b1, w2, b2, x):
    return ((torch.relu(x @ w1 + b1) @ w2 + b2) ** 2).sum() / 320


def elementwise(x):
    y = torch.sigmoid(x) * torch.tanh(x)
    z = torch.log(torch.exp(y) + 1) / torch.sqrt(x)
    return (torch.sin(z) - torch.cos(z).abs()).sum()


def norm(x, g, b):
    centred = x - x.sum(-1, keepdim=True) / 64
    return (centred * torch.rsqrt((centred * centred).sum(-1, keepdim=True) / 64 + 1e-5) * g + b).sum()


def attention(w, x):
    q, k, v = (x @ w).split(16, -1)
    s = (q @ k.transpose(-1, -2)) * 0.25
    e = torch.exp(s - s.detach().amax(-1, keepdim=True))
    return ((e / e.sum(-1, keepdim=True)) @ v).sum()


def cell(u, b, h, c):
    gates = h @ u + b
    i, f, o, g = gates.split(32, -1)
    d = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
    return (torch.sigmoid(o) * torch.tanh(d)).sum()


def activations(x):
    y = torch.nn.functional.gelu(x, approximate="tanh") + torch.nn.functional.silu(x * 2)
    return torch.exp(y.clamp(-1, 1)).sum() + torch.where(x > 0.5, y, x).sum()


print(json.dumps({
    "mlp": saved_bytes(mlp, p(64, 128), p(128), p(128, 10), p(10), torch.rand(32, 64)),
    "elementwise": saved_bytes(elementwise, p(1000)),
    "norm": saved_bytes(norm, p(32, 64), p(64), p(64)),
    "attention": saved_bytes(attention, p(64, 48), torch.rand(8, 64)),
    "activations": saved_bytes(activations, p(500)),
    "cell": saved_bytes(cell, p(64, 128), p(128), torch.rand(4, 64), p(4, 32)),
}))
