# predicted peak: 4,988,910,080 bytes (torch.cuda.max_memory_allocated), 5,747,833,344 without the policy
# 0 blocks recomputed whole, 12 but for products, convolutions and attention
# with torch.compile instead: torch._functorch.config.activation_memory_budget = 0.86
from functools import partial

from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

# modules of which only the inputs are kept
WHOLE = []
# modules, and the occurrences of operations in them whose results are kept
SELECTIVE = [
    (["layer1.0", "layer2.0", "layer3.0"], {"aten.convolution.default": [0, 1, 2, 3]}),
    (["layer1.1", "layer1.2", "layer2.1", "layer2.2", "layer2.3", "layer3.1", "layer3.2", "layer3.3", "layer3.4"], {"aten.convolution.default": [0, 1, 2]}),
]


def contexts(saves):
    counts = {False: {}, True: {}}  # separately for the forward pass and for the second time

    def policy(ctx, op, *args, **kwargs):
        seen = counts[ctx.is_recompute]
        name = str(op)
        occurrence = seen[name] = seen.get(name, -1) + 1
        return CheckpointPolicy.MUST_SAVE if occurrence in saves.get(name, ()) else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def apply_policy(model):
    for module in model.modules():  # models of transformers: a cache would be filled a second time
        if hasattr(getattr(module, "config", None), "use_cache"):
            module.config.use_cache = False
    for name in WHOLE:
        module = model.get_submodule(name)
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)
    for names, saves in SELECTIVE:
        for name in names:
            module = model.get_submodule(name)
            module.forward = partial(checkpoint, module.forward, use_reentrant=False, context_fn=partial(contexts, saves))
    return model
