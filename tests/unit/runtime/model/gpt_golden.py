"""Prints gpt_golden.txt: loss and gradients of a tiny gpt in PyTorch, in double precision, with weights and tokens made by formulas
that gpt_test.cc repeats. Run by hand with PyTorch 2; the output is committed. Lines: a name and its values."""

import math
import pathlib
import sys

import numpy
import torch

sys.path.append(str(pathlib.Path(__file__).parents[4] / "benchmarks" / "peers"))
from gpt_torch import Gpt

LAYERS, HEADS, WIDTH, BLOCK, VOCABULARY, BATCH = 2, 2, 8, 6, 11, 3

model = Gpt(LAYERS, HEADS, WIDTH, BLOCK, VOCABULARY).double()
parameters = sorted(model.named_parameters())
with torch.no_grad():
    for number, (name, parameter) in enumerate(parameters):
        base = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values = [base + 0.2 * math.sin(0.37 * i * i + number) for i in range(parameter.numel())]
        parameter.copy_(torch.from_numpy(numpy.float32(values).astype(float)).view_as(parameter))
tokens = torch.tensor([[(7 * r * r + 3 * t) % VOCABULARY for t in range(BLOCK)] for r in range(BATCH)])
labels = torch.tensor([[(5 * r + t * t + 1) % VOCABULARY for t in range(BLOCK)] for r in range(BATCH)])
loss = model(tokens, labels)
loss.backward()
print(f"loss {loss.item():.12g}")
for name, parameter in parameters:
    print(name, *(f"{v:.9g}" for v in parameter.grad.flatten().tolist()))
