"""PyTorch on one GPU: the other half of gpu-beside.mjs. Prints one line of JSON for each figure.

python3 gpu-torch.py FOLDER [small] [products] [gaps]

FOLDER has spec.py, the initial values and batches that the built-in programs of Tidemark start from too.

  small      six programs: eager, compiled by torch.compile, and as one recorded CUDA graph; a step ends when its loss is on the host
  products   those of GPT-2 small, forward and both gradients, in tf32
  gaps       how much of a step of `gpt` no kernel runs, and how many kernels it has
"""

import gc
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

folder, *sections = sys.argv[1:]
sys.path.insert(0, folder)
import spec

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
DEVICE = "cuda"
NAMES = {"mlp": "A", "cnn": "B", "lstm": "C", "gpt": "D", "chain64": "E64", "chain256": "E256"}
# torch.compile writes out every block of these: minutes
NOT_COMPILED = ("chain64", "chain256")
STEPS = 50


def emit(**row):
    print(json.dumps(row), flush=True)


def mlp(p, x, y):
    for i in range(2):
        x = F.relu(torch.addmm(p[f"b{i}"], x, p[f"w{i}"]))
    return F.cross_entropy(torch.addmm(p["b2"], x, p["w2"]), y)


def cnn(p, x, y):
    x = F.relu(F.conv2d(x, p["c1"], p["c1b"]))
    x = F.relu(F.conv2d(x, p["c2"], p["c2b"], stride=2)).flatten(1)
    x = F.relu(torch.addmm(p["d1b"], x, p["d1"]))
    return F.cross_entropy(torch.addmm(p["d2b"], x, p["d2"]), y)


def lstm(p, x, y):
    steps = (x.transpose(0, 1) @ p["wx"] + p["b"]).unbind(0)
    hidden = p["wh"].shape[0]
    h = c = torch.zeros(x.shape[0], hidden, device=DEVICE)
    for z in steps:
        i, f, g, o = torch.addmm(z, h, p["wh"]).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return F.cross_entropy(torch.addmm(p["bo"], h, p["wo"]), y)


def gpt(p, x, y):
    size = spec.SPEC["D"]
    d, heads = size["d"], size["heads"]

    def norm(h, name):
        return F.layer_norm(h, (d,), p[name + "g"], p[name + "b"], 1e-5)

    h = p["tok"][x] + p["pos"]
    for block in range(size["layers"]):
        at = f"{block}."
        qkv = norm(h, at + "ln1") @ p[at + "qkv"] + p[at + "qkvb"]
        q, k, v = (z.unflatten(2, (heads, d // heads)).transpose(1, 2) for z in qkv.split(d, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        h = h + (a @ p[at + "proj"] + p[at + "projb"])
        wide = F.gelu(norm(h, at + "ln2") @ p[at + "fc"] + p[at + "fcb"], approximate="tanh")
        h = h + (wide @ p[at + "fo"] + p[at + "fob"])
    logits = norm(h, "lnf") @ p["head"]
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def chain(p, x, y):
    for block in range(len(p) // 2):
        x = x + F.relu(x @ p[f"{block}.w1"]) @ p[f"{block}.w2"]
    return F.mse_loss(x, y)


LOSSES = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "gpt": gpt, "chain64": chain, "chain256": chain}


def optimizer_of(letter, params):
    size = spec.SPEC[letter]
    if letter == "A":
        return torch.optim.Adam(params, lr=size["lr"], eps=1e-8, capturable=True, foreach=True)
    if letter == "D":
        return torch.optim.AdamW(params, lr=size["lr"], eps=1e-8, weight_decay=size["wd"], capturable=True, foreach=True)
    return torch.optim.SGD(params, lr=size["lr"], momentum=size.get("momentum", 0), foreach=True)


def training(name, compiled):
    """A step of a program from its first state; what it returns is the loss, still on the device."""
    letter = NAMES[name]
    values = {key: torch.tensor(value, device=DEVICE, requires_grad=True) for key, value in spec.init_params(letter).items()}
    x, y = (torch.tensor(part, device=DEVICE) for part in spec.batch(letter))
    optimizer = optimizer_of(letter, list(values.values()))
    loss_of = torch.compile(LOSSES[name]) if compiled else LOSSES[name]

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(values, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def recorded(step):
    """The same step as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def measured(step):
    losses = [step().item() for _ in range(5)]
    gc.collect()
    torch.cuda.synchronize()
    kept = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step().item()
    over = torch.cuda.max_memory_allocated() - kept
    times = []
    for _ in range(STEPS):
        started = time.perf_counter()
        step().item()
        times.append((time.perf_counter() - started) * 1e3)
    return {"ms": statistics.median(times), "overMiB": over / 2**20, "losses": losses}


def small():
    for name in NAMES:
        for how in ("eager", "compiled", "graph"):
            if how == "compiled" and name in NOT_COMPILED:
                continue
            started = time.perf_counter()
            try:
                torch._dynamo.reset()
                step = training(name, how == "compiled")
                figures = measured(recorded(step) if how == "graph" else step)
                emit(section="small", program=name, how=how, seconds=time.perf_counter() - started, **figures)
            except Exception as error:
                emit(section="small", program=name, how=how, error=str(error)[:200])


SHAPES = [
    ("qkv", 8192, 2304, 768),
    ("proj", 8192, 768, 768),
    ("fc", 8192, 3072, 768),
    ("fo", 8192, 768, 3072),
    ("head, 1024 tokens", 1024, 50304, 768),
    ("head", 8192, 50257, 768),
]


def milliseconds(run, times=20):
    for _ in range(3):
        run()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / times


def products():
    for name, rows, cols, depth in SHAPES:
        x, w, g = (torch.randn(shape, device=DEVICE) for shape in ((rows, depth), (depth, cols), (rows, cols)))
        ways = {"forward": lambda: x @ w, "to input": lambda: g @ w.T, "to weight": lambda: x.T @ g}
        for way, run in ways.items():
            ms = milliseconds(run)
            emit(section="products", name=name, way=way, ms=ms, tflops=2 * rows * cols * depth / ms / 1e9)
        del x, w, g


def gaps():
    for how in ("eager", "graph"):
        step = training("gpt", False)
        run = recorded(step) if how == "graph" else step
        ms = milliseconds(run)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(5):
                run()
            torch.cuda.synchronize()
        kernels = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        busy = sum(event.time_range.elapsed_us() for event in kernels) / 5e3
        count = len(kernels) / 5
        emit(section="gaps", how=how, ms=ms, busyMs=busy, kernels=count, gapUs=(ms - busy) / count * 1e3 if count else math.nan)


emit(section="about", torch=torch.__version__, device=torch.cuda.get_device_name())
for section in sections:
    {"small": small, "products": products, "gaps": gaps}[section]()
