#!/usr/bin/env python3
"""Writes a safetensors checkpoint for bench/run: matrices whose values look like weights (no NaN, no Inf, few zeros).

  gentensors.py OUT --dtype F16 --size 2G [--shards 1] [--sparse]

--sparse makes files of holes: all zeros, no blocks on the disk, for measuring memory.
"""
import argparse
import json
import os
import random
import struct

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
WIDTH = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "F8_E4M3": 1, "F8_E5M2": 1}
BLOCK = 4 << 20
COLUMNS = 4096


def block(dtype, dice):
    """BLOCK bytes: the last byte of an element, which holds its sign and most of its exponent, comes from a table."""
    width = WIDTH[dtype]
    data = bytearray(dice.randbytes(BLOCK))
    choices = {"F16": range(0x20, 0x2c), "BF16": range(0x3b, 0x3d), "F32": range(0x3b, 0x3d), "F64": range(0x3f, 0x40),
               "F8_E4M3": range(0x00, 0x60), "F8_E5M2": range(0x00, 0x50)}[dtype]
    table = bytes((choices[i % len(choices)] | (i & 0x80)) for i in range(256))
    data[width - 1::width] = bytes(data[width - 1::width]).translate(table)
    return bytes(data)


def shard(path, dtype, size, dice, sparse, number):
    rows = BLOCK * 16 // (COLUMNS * WIDTH[dtype])
    each = rows * COLUMNS * WIDTH[dtype]
    count = max(1, size // each)
    header = {"model.layers.%d.mlp.w%d.weight" % (number, i): {"dtype": dtype, "shape": [rows, COLUMNS], "data_offsets": [i * each, (i + 1) * each]}
              for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        if sparse:
            f.truncate(8 + len(text) + count * each)
            return list(header)
        data = block(dtype, dice)
        for i in range(count):
            # As many zeros as no other tensor has: of equal ones, `check` would read the contents again to say so.
            zeros = (i + 1) * 1000 * WIDTH[dtype]
            f.write(bytes(zeros) + data[zeros:])
            for _ in range(each // BLOCK - 1):
                f.write(data)
    return list(header)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--dtype", default="F16", choices=sorted(WIDTH))
    p.add_argument("--size", default="2G")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--sparse", action="store_true")
    o = p.parse_args()
    size = int(o.size[:-1]) * UNITS[o.size[-1]]
    os.makedirs(o.out, exist_ok=True)
    dice, places = random.Random(5), {}
    for i in range(o.shards):
        name = "model-%05d-of-%05d.safetensors" % (i + 1, o.shards) if o.shards > 1 else "model.safetensors"
        for tensor in shard(os.path.join(o.out, name), o.dtype, size // o.shards, dice, o.sparse, i):
            places[tensor] = name
    if o.shards > 1:
        with open(os.path.join(o.out, "model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {}, "weight_map": places}, f)


if __name__ == "__main__":
    main()
