"""The peer of our gpt model: the same network in PyTorch, one thread, fp32, AdamW. Prints tokens per second, best and median.

  taskset -c 0 python benchmarks/peers/gpt_torch.py [--layers 4 --heads 4 --width 128 --block 64 --vocabulary 256 --batch 12]
"""

import argparse
import math
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, block, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                residual = name.endswith(("projection.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in dict(layers=4, heads=4, width=128, block=64, vocabulary=256, batch=12, steps=40, threads=1).items():
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = Gpt(a.layers, a.heads, a.width, a.block, a.vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    tokens = torch.randint(a.vocabulary, (a.batch, a.block + 1))
    times = []
    for step in range(a.steps + 5):
        start = time.perf_counter()
        loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step >= 5:
            times.append(time.perf_counter() - start)
    count = a.batch * a.block
    print(f"PyTorch {torch.__version__}: gpt {a.layers} layers, {a.heads} heads, width {a.width}, block {a.block}, "
          f"batch {a.batch}: {count / statistics.median(times):.0f} tokens/s (best {count / min(times):.0f}), "
          f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
