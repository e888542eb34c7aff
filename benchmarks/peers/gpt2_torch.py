"""The peer of benchmarks/gpu_training: the same GPT-2 in PyTorch, bf16 by autocast with fp32 weights, SDPA, fused AdamW; eager or compiled.

One process of a whole case, told what to do by lines of JSON on its standard input; it answers each by one. The model's sizes and paths are its argument:

  {"do": "rate", "mode": "eager"|"compile", "batch": 16, "steps": 20, "warmup": 5}   -> {"seconds": ..., "peakMegabytes": ...} or {"error": ...}
  {"do": "losses", "batch": 8, "order": [[sample, ...], ...], "rates": [...], "precision": "BF16"}   -> {"losses": [...]}
"""

import array
import json
import sys
import time

import torch

import gpt_torch


def load(path):
    """The tensors of a safetensors file, in fp32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(data, dtype=torch.float32, offset=entry["data_offsets"][0],
                                   count=(entry["data_offsets"][1] - entry["data_offsets"][0]) // 4).reshape(entry["shape"]).clone()
            for name, entry in header.items()}


class Peer:
    def __init__(self, told):
        self.told, self.size = told, told["size"]
        self.device = told["device"]
        torch.set_float32_matmul_precision("high")
        if self.device == "cpu":
            torch.set_num_threads(1)
        tokens = array.array("H")
        with open(told["tokens"], "rb") as file:
            tokens.frombytes(file.read())
        self.tokens = torch.tensor(tokens, dtype=torch.int32).to(self.device)
        self.model = gpt_torch.Gpt(*(self.size[key] for key in ("layers", "heads", "width", "block", "vocabulary"))).to(self.device)
        self.compiled = torch.compile(self.model, dynamic=False)
        self.reset()

    def reset(self):
        """The weights of the file, and an optimizer that has seen nothing."""
        self.model.load_state_dict(load(self.told["weights"]))
        o = self.told["optimizer"]
        groups = [{"params": [p for p in self.model.parameters() if (p.dim() >= 2) == decays], "weight_decay": o["weightDecay"] if decays else 0.0}
                  for decays in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, lr=o["learningRate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"], fused=True)

    def samples(self, indices):
        """Tokens and labels; both on the device already."""
        block = self.size["block"]
        at = (torch.as_tensor(indices, device=self.device) * block).unsqueeze(1) + torch.arange(block + 1, device=self.device)
        rows = self.tokens[at].long()
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def step(self, model, indices, precision):
        tokens, labels = self.samples(indices)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=precision == "BF16"):
            loss = model(tokens, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.told["optimizer"]["clipNorm"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def rate(self, mode, batch, steps, warmup):
        model = self.compiled if mode == "compile" else self.model
        samples = (len(self.tokens) - 1) // self.size["block"]
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for step in range(-warmup, steps):
            if step == 0:
                self.wait()
                begin = time.perf_counter()
            self.step(model, [(step * batch + i) % samples for i in range(batch)], "BF16")
        self.wait()
        return {"seconds": time.perf_counter() - begin, "peakMegabytes": torch.cuda.max_memory_reserved() / 1e6 if self.device == "cuda" else None}

    def losses(self, batch, order, rates, precision):
        self.reset()
        losses = []
        for samples, rate in zip(order, rates):
            assert len(samples) == batch
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            losses.append(self.step(self.model, samples, precision))
        return {"losses": torch.stack(losses).float().tolist()}

    def answer(self, command):
        do = getattr(self, command.pop("do"))
        try:
            return do(**command)
        except Exception as error:   # out of memory, or a compiler that is not there: what else is asked for may work
            self.optimizer.zero_grad(set_to_none=True)
            return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}
        finally:
            if self.device == "cuda":
                torch.cuda.empty_cache()


def main():
    out, sys.stdout = sys.stdout, sys.stderr   # what libraries print is no answer
    peer = Peer(json.loads(sys.argv[1]))
    print(json.dumps({"torch": torch.__version__, "parameters": sum(p.numel() for p in peer.model.parameters())}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(peer.answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
