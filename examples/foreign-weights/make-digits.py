# Trains a small classifier of handwritten digits in PyTorch and saves it as its users do: safetensors, bf16, PyTorch's names.
#
#   python3 make-digits.py FOLDER digits.safetensors     FOLDER has MNIST's t10k files; needs torch and safetensors
import sys

import numpy as np
import torch
from safetensors.torch import save_file

folder, out = sys.argv[1:]


def idx(path):
    data = open(path, "rb").read()
    axes = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def network():
    return torch.nn.Sequential(torch.nn.Linear(784, 48), torch.nn.ReLU(), torch.nn.Linear(48, 10))


x = torch.tensor(idx(f"{folder}/t10k-images-idx3-ubyte").reshape(-1, 784).copy()).float() / 255
y = torch.tensor(idx(f"{folder}/t10k-labels-idx1-ubyte").astype(np.int64))
torch.manual_seed(0)
net = network()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
for epoch in range(12):
    for i in torch.randperm(len(x)).split(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[i]), y[i]).backward()
        optimizer.step()
net = net.bfloat16()
save_file(net.state_dict(), out, metadata={"format": "pt"})
read = network()
read.load_state_dict({name: value.float() for name, value in net.state_dict().items()})
print("scores of the first image:", read(x[:1]).detach().numpy().tolist())
