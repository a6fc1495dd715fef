#!/usr/bin/env python3
"""Writes the files that the examples of --help and of the man page speak of into an empty folder. Our own words and numbers, in
the shape that PyTorch prints: rank 2 runs out of memory, the others wait for it and time out."""
import gzip, os, sys

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
    for name in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)


if __name__ == "__main__":
    make(sys.argv[1])
