# SPDX-License-Identifier: Apache-2.0
"""Writes what the installed PyTorch computes on CPU, as bits, for tests/unit/test_numerics_torch.c.

  python3 tests/numerics/torch_bits.py --small FILE   the fixtures in this folder, one per version
  python3 tests/numerics/torch_bits.py FILE           thousands of rows
  python3 tests/numerics/torch_bits.py --run PROGRAM  the same in a temporary file, then PROGRAM FILE

A file is text lines, each of the last two kinds followed by raw little-endian values:
  torch VERSION CAPABILITY
  in DTYPE ROWS N            the input of what follows
  out OP DTYPE ROWS M PARAM  the result of OP on it (PARAM a number, or 0)
Exit status 77: there is no torch, or its kernels are not the AVX2 ones.
"""
import os
import subprocess
import sys
import tempfile

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"  # the order of sums depends on the width of vectors
os.environ["OMP_NUM_THREADS"] = "1"
try:
    import torch
except ImportError:
    print("skipped: python3-torch is not installed")
    sys.exit(77)
import torch.nn.functional as F

EPS = 1e-5
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}
for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
    if hasattr(torch, name):
        NAMES[getattr(torch, name)] = name


def raw(t):
    t = t.detach().contiguous()
    return t.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[t.element_size()]).numpy().tobytes()


def capability():
    if hasattr(torch.backends, "cpu"):
        return torch.backends.cpu.get_cpu_capability()
    for line in torch.__config__.show().splitlines():
        if "CPU capability usage" in line:
            return line.split(":")[1].strip()
    return "?"


def rms(form, x, w):
    n = x.shape[-1]
    if form == "norm":
        return x / (x.norm(2, -1, keepdim=True) * n**-0.5 + EPS) * w
    if form == "float-first":
        f = x.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS)
        return f.to(x.dtype) * w
    v = {"pow-mean": lambda: x.pow(2).mean(-1, keepdim=True),
         "mul-mean": lambda: (x * x).mean(-1, keepdim=True),
         "mul-sum-div": lambda: (x * x).sum(-1, keepdim=True) / n}[form]()
    return x * torch.rsqrt(v + EPS) * w


def weight(n, dtype):
    """Exact in every type: the C side builds the same."""
    return (1 + (torch.arange(n) % 5).float() / 4).to(dtype)


def backward(form, what):
    def run(x, scale):
        x = x.clone().requires_grad_(True)
        w = weight(x.shape[-1], x.dtype).expand(x.shape).clone().requires_grad_(True)
        dy = (scale * (1 - (torch.arange(x.shape[-1]) % 3).float() / 2)).to(x.dtype).expand(x.shape)
        rms(form, x, w).backward(dy)
        return x.grad if what == "dx" else w.grad
    return run


LENGTHS = (2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 257, 1000, 1025, 3000, 4096, 12288)
FORMS = ("pow-mean", "mul-mean", "mul-sum-div", "norm", "float-first")
ELEMENTWISE = {
    "pow2": (lambda x, p: x.pow(2), (0,)), "mul": (lambda x, p: x * x, (0,)),
    "pow3": (lambda x, p: x.pow(3), (0,)), "rsqrt": (lambda x, p: x.rsqrt(), (0,)),
    "sqrt": (lambda x, p: x.sqrt(), (0,)), "exp": (lambda x, p: x.exp(), (0,)),
    "log": (lambda x, p: x.log(), (0,)), "silu": (lambda x, p: F.silu(x), (0,)),
    "gelu": (lambda x, p: F.gelu(x), (0,)),
    "add-scalar": (lambda x, p: x + p, (1e-5, 1e-8, 0.3)),
    "mul-scalar": (lambda x, p: x * p, (0.3, 2.0)),
    "div-scalar": (lambda x, p: x / p, (3000, 12345, 0.3)),
}
REDUCTIONS = {
    "sum": (lambda x, p: x.sum(-1), (0,)), "mean": (lambda x, p: x.mean(-1), (0,)),
    "norm": (lambda x, p: x.norm(2, -1), (0,)),
    "ms:pow-mean": (lambda x, p: x.pow(2).mean(-1), (0,)),
    "ms:mul-sum-div": (lambda x, p: (x * x).sum(-1) / x.shape[-1], (0,)),
    "ms:float-first": (lambda x, p: x.float().pow(2).mean(-1), (0,)),
}
ROWS = {
    "softmax": (lambda x, p: torch.softmax(x, -1), (0,)),
    "layer-norm": (lambda x, p: F.layer_norm(x, x.shape[-1:], weight(x.shape[-1], x.dtype), None, EPS), (0,)),
}
for form in FORMS:
    ROWS["rms:" + form] = (lambda x, p, form=form: rms(form, x, weight(x.shape[-1], x.dtype)), (0,))
    ROWS["dx:" + form] = (backward(form, "dx"), (1, 1000))
    ROWS["dw:" + form] = (backward(form, "dw"), (1,))


def put(out, x, ops):
    out.write(b"in %s %d %d\n" % (NAMES[x.dtype].encode(), x.shape[0], x.shape[1]) + raw(x))
    for name, (op, params) in ops.items():
        for p in params:
            try:
                y = op(x, p)
            except (RuntimeError, TypeError):  # no such kernel in this version
                continue
            y = y.reshape(x.shape[0], -1)
            out.write(b"out %s %s %d %d %r\n" % (name.encode(), NAMES[y.dtype].encode(), y.shape[0], y.shape[1],
                                                 float(p) if p else 0) + raw(y))


def casts(x):
    ops = {}
    for dtype, name in NAMES.items():
        if dtype != x.dtype:
            ops["cast"] = (lambda x, p, dtype=dtype: x.to(dtype), (0,))
            yield dict(ops)


def flat(dtype, small, rng):
    """All codes of 16 bits, or a selection; floats around every power of two."""
    if dtype == torch.float32:
        bits = torch.randint(-2**31, 2**31 - 1, (150 if small else 30000,), generator=rng, dtype=torch.int64)
        near = torch.randn(150 if small else 30000, generator=rng) * 8
        return torch.cat([bits.to(torch.int32).view(torch.float32), near]).reshape(1, -1)
    codes = torch.arange(-32768, 32768, 331 if small else 1).to(torch.int16)
    return codes.view(dtype).reshape(1, -1)


def rows(n, count, dtype, rng):
    x = torch.randn(count, n, generator=rng) * torch.exp(torch.randn(count, 1, generator=rng))
    for k in range(count):
        kind = k % 8
        if kind == 1:
            x[k] *= torch.exp(2 * torch.randn(n, generator=rng))  # a heavy tail
        elif kind == 2 and n > 3:
            half = n // 2  # nearly cancels: the sum shows the order in which it was taken
            x[k, half:2 * half] = -x[k, torch.randperm(half, generator=rng)]
            x[k] = x[k].to(dtype).float()
        elif kind == 3:
            x[k, int(torch.randint(0, n, (1,), generator=rng))] = 300.0  # its square is no half
        elif kind == 4:
            x[k] *= 30
        elif kind == 5:
            x[k] *= 1e-3
    if count > 10:
        x[8] = 0
        x[9, n // 2] = float("inf")
        x[10, n // 3] = float("nan")
    return x.to(dtype)


def main():
    small = "--small" in sys.argv
    scratch = tempfile.NamedTemporaryFile(suffix=".bits") if "--run" in sys.argv else None
    path = scratch.name if scratch else sys.argv[-1]
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(20240229)
    if capability() != "AVX2":
        print("skipped: kernels are", capability())
        sys.exit(77)
    with open(path, "wb") as out:
        out.write(b"torch %s %s\n" % (torch.__version__.encode(), capability().encode()))
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            x = flat(dtype, small, rng)
            put(out, x, ELEMENTWISE)
            for one in casts(x):
                put(out, x, one)
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            if small:
                put(out, rows(17, 11, dtype, rng), {**REDUCTIONS, **ROWS})
                put(out, rows(300, 3, dtype, rng), ROWS)
                put(out, rows(1100, 3, dtype, rng), REDUCTIONS)
                put(out, rows(3, 11, dtype, rng), REDUCTIONS)
                continue
            for n in LENGTHS:
                put(out, rows(n, 100 if n < 4000 else 32, dtype, rng), REDUCTIONS)
                put(out, rows(n, 33 if n < 100 else 11 if n < 4000 else 2, dtype, rng), ROWS)
    if scratch:
        sys.exit(subprocess.run([sys.argv[-1], path]).returncode)


main()
