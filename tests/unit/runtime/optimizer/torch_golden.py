"""Prints torch_golden.h: where PyTorch's optimizers are after some steps. Run by hand with PyTorch 2; the output is committed."""

import torch

SIZE, STEPS = 5, 6
CASES = {
    "SGD, 0.1, 0, false, 0": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, 0.1, 0.9, false, 0.01": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD, 0.1, 0.9, true, 0.01": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "ADAM, 0.01, 0, false, 0.1": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1),
    "ADAMW, 0.01, 0, false, 0.1": lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1),
}


def run(make, clip):
    weights = torch.tensor([((5 * i) % 7 - 3) / 4 for i in range(SIZE)], dtype=torch.float64, requires_grad=True)
    optimizer = make([weights])
    for t in range(STEPS):
        weights.grad = torch.tensor([((7 * i + 3 * t) % 11 - 5) / 8 for i in range(SIZE)], dtype=torch.float64)
        if clip:
            torch.nn.utils.clip_grad_norm_([weights], clip)
        optimizer.step()
    return weights.tolist()


print("#pragma once\n")
print(f"// Made by torch_golden.py with PyTorch {torch.__version__.split('+')[0]}, in double precision.\n")
print('#include "proto/paceline/v1/training.pb.h"\n')
print("using TorchType = paceline::v1::OptimizerSpec;\n")
print("struct TorchCase {\n  struct {\n    TorchType::Type type;\n    double rate, momentum;\n    bool nesterov;\n    double decay, clip;\n  } of;\n"
      f"  double weights[{SIZE}];\n}};\n")
print(f"inline constexpr int kTorchSteps = {STEPS};")
print("inline constexpr TorchCase kTorchCases[] = {")
for text, make in CASES.items():
    for clip in (0, 0.75):
        values = ", ".join(f"{v:.12g}" for v in run(make, clip))
        print(f"    {{{{TorchType::{text}, {clip}}}, {{{values}}}}},")
print("};")
