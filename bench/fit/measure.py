"""What training steps of models really take in PyTorch, to compare `tidemark fit` with: peaks of the allocator, graphs without weights,
and on request every allocation of a run.

    python3 bench/fit/measure.py OUT [NAME ...]      needs a CUDA device, torch 2.9 or newer, torchvision, transformers

Writes OUT/peaks.json (as `tidemark fit` counts: f32, loss = mean of squared outputs, evaluation mode, the third step) and OUT/NAME.b1.graph.pt2.
With EVENTS=NAME:BATCH:OPTIMIZER,... also OUT/events.json.gz: sizes and addresses of all allocations of those runs, in order.
"""

import gc
import gzip
import io
import json
import os
import sys
import time
import zipfile

import torch


class Output(torch.nn.Module):
    """The first tensor that a model of transformers returns."""

    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, x):
        out = self.m(x)
        return out.logits if hasattr(out, "logits") else out[0]


class UNet(torch.nn.Module):
    """The network of the shared files: instance norm, leaky relu, transposed convolution, bilinear upsampling."""

    def __init__(self, c=64):
        super().__init__()
        n = torch.nn
        block = lambda i, o: n.Sequential(n.Conv2d(i, o, 3, padding=1), n.InstanceNorm2d(o, affine=True), n.LeakyReLU(0.1))
        self.d1, self.d2, self.m = block(3, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.u2 = n.ConvTranspose2d(4 * c, 2 * c, 2, stride=2)
        self.e2, self.e1 = block(4 * c, 2 * c), block(3 * c, c)
        self.o = n.Conv2d(c, 2, 1)

    def forward(self, x):
        f = torch.nn.functional
        a = self.d1(x)
        b = self.d2(f.max_pool2d(a, 2))
        m = self.m(f.avg_pool2d(b, 2))
        y = self.e2(torch.cat([self.u2(m), b], 1))
        y = f.interpolate(y, scale_factor=2.0, mode="bilinear")
        return self.o(self.e1(torch.cat([y, a], 1)))


def vision(name, size=224):
    import torchvision

    return lambda: getattr(torchvision.models, name)(weights=None), lambda b: torch.randn(b, 3, size, size)


def language(make, length, vocabulary):
    return lambda: Output(make()), lambda b: torch.randint(0, vocabulary, (b, length))


def hugging(config, model, length, **keys):
    def make():
        import transformers as t

        return getattr(t, model)(getattr(t, config)(**keys))

    return language(make, length, keys.get("vocab_size", 30522))


CASES = {
    "gpt2-small": (*hugging("GPT2Config", "GPT2LMHeadModel", 1024, vocab_size=50257), (1, 4)),
    "bert-base": (*hugging("BertConfig", "BertForMaskedLM", 512, vocab_size=30522), (1, 8)),
    "llama-160m": (
        *hugging("LlamaConfig", "LlamaForCausalLM", 512, vocab_size=32000, hidden_size=768, intermediate_size=2048,
                 num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4),
        (1, 4),
    ),
    "distilbert": (*hugging("DistilBertConfig", "DistilBertForMaskedLM", 256, vocab_size=30522), (1, 8)),
    "resnet50": (*vision("resnet50"), (1, 16, 64)),
    "unet-64": (lambda: UNet(64), lambda b: torch.randn(b, 3, 256, 256), (1, 8)),
    "mobilenet_v2": (*vision("mobilenet_v2"), (1, 32)),
    "efficientnet_b0": (*vision("efficientnet_b0"), (1, 32)),
    "densenet121": (*vision("densenet121"), (1, 16)),
    "vgg11": (*vision("vgg11"), (1, 16)),
    "convnext_tiny": (*vision("convnext_tiny"), (1, 16)),
    "vit_b_16": (*vision("vit_b_16"), (1, 16)),
    "swin_t": (*vision("swin_t"), (1, 16)),
    "regnet_y_400mf": (*vision("regnet_y_400mf"), (1, 32)),
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
}


def measure(model, inputs, optimizer):
    """Peak of the third step, and what is held after it."""
    x = inputs.cuda()
    update = OPTIMIZERS[optimizer]([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        loss = model(x).pow(2).mean()
        loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()


def save_graph(name, model, inputs, out):
    """The exported program without the bytes of its weights."""
    program = torch.export.export(model, (inputs,))
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(f"{out}/{name}.b1.graph.pt2", "w", zipfile.ZIP_DEFLATED) as kept:
        for entry in source.namelist():
            if "/data/weights/" in entry and not entry.endswith(".json"):
                continue
            if entry.endswith("sample_inputs/model.pt"):
                continue
            kept.writestr(entry, source.read(entry))


def events_of(run):
    """Allocations and frees of a run, in order: [+size, address] and [-size, address]."""
    torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)
    result = run()
    traces = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    signs = {"alloc": 1, "free_completed": -1, "segment_alloc": "segment", "segment_free": "unsegment"}
    return result, [[signs[e["action"]], e["size"], e["addr"]] for e in traces if e["action"] in signs]


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(CASES)
    wanted = set(filter(None, os.environ.get("EVENTS", "").split(",")))
    peaks, events = [], {}
    # handles of cuBLAS on both threads, so that their workspaces are there in all cases
    w = torch.ones(64, 64, device="cuda", requires_grad=True)
    (w @ w).sum().backward()
    del w
    print("workspaces", torch.cuda.memory_allocated(), torch.__version__, flush=True)
    for name in names:
        make, inputs, batches = CASES[name]
        started = time.time()
        try:
            torch.manual_seed(0)
            model = make().eval()
            if os.environ.get("GRAPHS", "1") == "1":
                save_graph(name, model, inputs(1), out)
            for batch in batches:
                for optimizer in ("sgd", "adamw"):
                    gc.collect()
                    torch.cuda.empty_cache()
                    def run():
                        placed = model.cuda()
                        return measure(placed, inputs(batch), optimizer)
                    key = f"{name}:{batch}:{optimizer}"
                    if key in wanted:
                        (peak, held), events[key] = events_of(run)
                    else:
                        peak, held = run()
                    model = model.cpu()
                    peaks.append({"case": name, "batch": batch, "optimizer": optimizer, "peak": peak, "held_between_steps": held})
                    print(peaks[-1], flush=True)
                    for p in model.parameters():
                        p.grad = None
        except Exception as error:
            print(name, "failed:", repr(error)[:300], flush=True)
        print(name, f"{time.time() - started:.1f} s", flush=True)
        with open(f"{out}/peaks.json", "w") as file:
            json.dump(peaks, file)
        if events:
            with gzip.open(f"{out}/events.json.gz", "wt") as file:
                json.dump(events, file)
        del model


if __name__ == "__main__":
    main()
