#!/usr/bin/env python3
"""Writes a folder for examples.

  make_sandbox.py FOLDER     an empty folder that is there

Writes the files that the examples of --help and of the man page speak of into an empty folder. Our own words and numbers, in
the shape that PyTorch prints: rank 2 runs out of memory, the others wait for it and time out."""
import gzip, json, os, random, struct, sys

FAILURE = """---
id: house-token-expired
title: 'House artefact token has expired'
category: storage
severity: medium
layer: storage
owner: platform
action: fix-first
scope: all-ranks
weight: 60
signals:
  - id: token
    role: cause
    literal: 'artefact token has expired'
    "yes":
      - 'RuntimeError: artefact token has expired at 2025-11-13T01:00:00Z'
    "no":
      - 'INFO renewed the artefact token, it would expire in 3600 s'
confirm:
  - 'house token show'
fix:
  primary: 'Renew the token with `house token renew`.'
  fallback: 'Ask the platform team for a service token of longer life.'
  emergency: 'Copy the artefacts to local disk and point HOUSE_CACHE there.'
verify:
  command: 'house token check'
  expect: ['valid']
  absent: ['artefact token has expired']
prevent:
  - 'Renew from a timer, every half life.'
refs:
  - https://example.org/house/tokens
---
## Quick answer

The run asked the house artefact store for a file with a token that was no longer valid. It is neither hardware nor model code.

## What this failure is

Tokens of the store live for eight hours; a run that outlives its token fails at the next download.

## Why it happens

The launcher fetches one token when the job is queued, not when it starts.

## Symptoms

| symptom | why |
|---|---|
| every rank stops at the first download after eight hours | they share one token |
"""


def rank_log(rank, world=4):
    lines = [f"[rank{rank}]: step {s} loss {3.2 - s * 0.01:.3f}" for s in range(1, 41)]
    stamp = "[rank%d]:[E1113 02:25:03.118 ProcessGroupNCCL.cpp:616] [Rank %d] " % (rank, rank)
    if rank == 2:
        lines += [
            "[rank2]: Traceback (most recent call last):",
            '[rank2]:   File "/home/ada/pretrain/train.py", line 88, in <module>',
            "[rank2]:     loss = model(batch)",
            '[rank2]:   File "/home/ada/pretrain/model.py", line 41, in forward',
            "[rank2]:     scores = q @ k.transpose(-2, -1)",
            "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 2 has a total capacity of "
            "79.10 GiB of which 3.41 GiB is free. Including non-PyTorch memory, this process has 75.68 GiB memory in use.",
        ]
    else:
        lines.append(
            stamp + "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=311, OpType=ALLREDUCE, NumelIn=7077888, "
            "NumelOut=7077888, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.")
    return "\n".join(lines) + "\n"


def half_weights(count, seed, step=0):
    """fp16 values of about +-0.02: a sign, an exponent near 2^-6, ten random bits; every step moves the last bits a little."""
    dice = random.Random(seed)
    codes = [dice.choice((0x2000, 0x2400, 0xa000, 0xa400)) + dice.randrange(16, 1000) for _ in range(count)]
    moves = random.Random(seed + step)
    return struct.pack("<%dH" % count, *(c + (moves.randrange(-8, 9) if step else 0) for c in codes))


def safetensors(tensors):
    """tensors: {name: (dtype, shape, bytes)} -> the file's bytes."""
    header, data = {}, b""
    for name, (dtype, shape, part) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def small_model(step=0):
    """A decoder of two layers, as anybody's trainer might save it."""
    tensors = {"model.embed_tokens.weight": ("F16", [128, 32], half_weights(128 * 32, 1, step))}
    for layer in range(2):
        for k, part in enumerate(("self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj")):
            tensors["model.layers.%d.%s.weight" % (layer, part)] = ("F16", [64, 32], half_weights(64 * 32, 10 * layer + k + 2, step))
        tensors["model.layers.%d.input_layernorm.weight" % layer] = ("F16", [32], struct.pack("<32H", *[0x3c00] * 32))
    tensors["lm_head.weight"] = ("F16", [128, 32], half_weights(128 * 32, 99, step))
    return tensors


MODEL_CONFIG = {"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 128,
                "torch_dtype": "float16", "rms_norm_eps": 1e-5}


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def make(folder):
    logs = [rank_log(r).encode() for r in range(4)]
    for r, log in enumerate(logs):
        write(f"{folder}/runs/42/rank{r}.log", log)
    write(f"{folder}/slurm-8123.out", b"".join(logs))
    write(f"{folder}/console.log.gz", gzip.compress(b"".join(logs), mtime=0))
    write(f"{folder}/my-failures/storage/house-token-expired.md", FAILURE.encode())
    healthy = "".join(f"[rank0]: step {s} loss {3.2 - s * 0.01:.3f}\n" for s in range(1, 101)) + "[rank0]: training finished\n"
    write(f"{folder}/healthy.log", healthy.encode())
    write(f"{folder}/model/model.safetensors", safetensors(small_model()))
    write(f"{folder}/model/config.json", json.dumps(MODEL_CONFIG).encode())
    write(f"{folder}/llama/config.json", json.dumps({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
                                                     "rms_norm_eps": 1e-5, "torch_dtype": "float16"}).encode())
    for step in (100, 200):
        write(f"{folder}/runs/steps/step-{step}/model.safetensors", safetensors(small_model(step)))
    for name in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import usage
    make(*usage.arguments(__doc__, "FOLDER"))
