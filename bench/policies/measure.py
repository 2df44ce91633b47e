"""Runs policies of `tidemark fit --policy torch` and compares the peak that PyTorch reports with the predicted one.

    tidemark fit gpt2-small.b1.graph.pt2 --batch 8 --optimizer sgd --budget 12GB --policy torch > gpt2-small.b8.sgd.py
    python3 bench/policies/measure.py [--compile] [--until=SECONDS] [POLICY.py ...]      needs a CUDA device, torch 2.9 or newer, torchvision, transformers

A policy file is called MODEL.bBATCH.OPTIMIZER[.anything].py; without arguments all of this folder are run. For each: the predicted and measured
peak of the third step, without and with the policy, the largest relative difference of gradients, and times of a step.

With --compile each policy is measured under torch.compile too, beside PyTorch's own `activation_memory_budget`: the fraction is found by bisection
whose peak is as large as the policy's, or else the nearest below, and the times of a step are compared (at most 1.05 is wanted). With --until=SECONDS
(since 1970) fractions are tried, and policies begun, while there is time. The exit status is 1 where a peak is more than 5 % off, a time above
that, or a gradient differs by more than 1 %.
"""

import gc
import glob
import os
import re
import sys
import time

import torch
import torch._dynamo
import torch._functorch.config


class Logits(torch.nn.Module):
    """Logits of a model of transformers, as it was exported."""

    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, x):
        return self.m(x).logits


def gpt2_small():
    from transformers import GPT2Config, GPT2LMHeadModel

    return Logits(GPT2LMHeadModel(GPT2Config())), lambda b: torch.randint(0, 50257, (b, 1024))


def resnet50():
    import torchvision

    return torchvision.models.resnet50(weights=None), lambda b: torch.randn(b, 3, 224, 224)


MODELS = {"gpt2-small": gpt2_small, "resnet50": resnet50}
TIMED = 10
BISECTIONS = 6
SAME_PEAK = 1.01

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
}


def policy_of(path):
    """Names that the pasted code defines, and the peaks it predicts: with and without it."""
    text = open(path).read()
    names = {}
    exec(compile(text, path, "exec"), names)
    found = re.search(r"predicted peak: ([\d,]+) bytes .*?, ([\d,]+) without", text)
    return names["apply_policy"], [int(number.replace(",", "")) for number in found.groups()]


def run(name, batch, optimizer, apply, fraction=None):
    """Peak, first gradients, seconds of a step. With a fraction the model is compiled: 1 leaves the budget as it is."""
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model = model.eval().cuda()
    x = inputs(batch).cuda()
    if apply:
        apply(model)
    parameters = list(model.parameters())
    if fraction is not None:
        torch._functorch.config.activation_memory_budget = fraction
        model = torch.compile(model)
    update = OPTIMIZERS[optimizer](parameters)
    first, times = None, []
    for step in range(3 + TIMED):
        torch.cuda.synchronize()
        started = time.perf_counter()
        if step < 3:
            torch.cuda.reset_peak_memory_stats()
        loss = model(x).pow(2).mean()
        loss.backward()
        if step == 0:
            first = [p.grad.cpu() for p in parameters]
        update.step()
        update.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
        if step == 2:
            peak = torch.cuda.max_memory_allocated()
    return peak, first, min(times[3:])


def own_budget(key, peak, until):
    """PyTorch's own budget with the largest peak up to a given one: fraction, peak, seconds of a step."""
    low, high, tried, took = 0.0, 1.0, [], 0.0
    for i in range(BISECTIONS + 1):
        started = time.time()
        if tried and started + took > until:
            print(f"      no time was left: {BISECTIONS + 1 - i} fractions were not tried", flush=True)
            break
        fraction = (low + high) / 2 if i > 0 else 1.0
        found, _, seconds = run(*key, None, fraction)
        tried.append((found, fraction, seconds))
        if found > SAME_PEAK * peak:
            high = fraction
        elif fraction == 1.0:
            break
        else:
            low = fraction
        took = max(took, time.time() - started)
    fitting = [one for one in tried if one[0] <= SAME_PEAK * peak]
    found, fraction, seconds = max(fitting) if fitting else min(tried)
    return fraction, found, seconds


def main():
    # handles of cuBLAS on both threads: their workspaces are predicted too
    w = torch.ones(64, 64, device="cuda", requires_grad=True)
    (w @ w).sum().backward()
    del w
    folder = os.path.dirname(os.path.abspath(__file__))
    compiles = "--compile" in sys.argv[1:]
    until = next((float(a.split("=")[1]) for a in sys.argv[1:] if a.startswith("--until=")), float("inf"))
    paths = [a for a in sys.argv[1:] if not a.startswith("--")] or sorted(p for p in glob.glob(f"{folder}/*.b*.py"))
    plain, failed = {}, False
    for path in paths:
        if time.time() > until:
            print(f"no time was left for {os.path.basename(path)}", flush=True)
            continue
        name, batch, optimizer = re.match(r"(.+?)\.b(\d+)\.(\w+)", os.path.basename(path)).groups()
        key = (name, int(batch), optimizer)
        apply, (with_policy, without) = policy_of(path)
        if key not in plain:
            plain[key] = run(*key, None)
            peak, _, seconds = plain[key]
            print(f"{name} batch {batch} {optimizer}: predicted {without:,}, measured {peak:,}, "
                  f"{100 * (without / peak - 1):+.2f} %, {1000 * seconds:.1f} ms", flush=True)
        peak, gradients, seconds = run(*key, apply)
        scale = [max(g.abs().max().item(), 1e-30) for g in plain[key][1]]
        off = max(((a - b).abs().max().item() / s) for a, b, s in zip(gradients, plain[key][1], scale))
        error = with_policy / peak - 1
        failed |= abs(error) > 0.05 or off > 0.01
        print(f"  {os.path.basename(path)}: predicted {with_policy:,}, measured {peak:,}, {100 * error:+.2f} %, "
              f"{1000 * seconds:.1f} ms, gradients differ by {off:.1e}", flush=True)
        if not compiles:
            continue
        peak, _, seconds = run(*key, apply, 1.0)
        fraction, own, own_seconds = own_budget(key, peak, until)
        failed |= seconds > 1.05 * own_seconds
        print(f"    compiled: {peak:,}, {1000 * seconds:.1f} ms; PyTorch's own budget of {fraction:.3f}: {own:,}, "
              f"{1000 * own_seconds:.1f} ms; {seconds / own_seconds:.3f} of its time", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
