#!/usr/bin/env python3
"""Logs of a training run that ends in one failure, for measuring. The same arguments give the same bytes.

  genlog.py OUT --ranks 8 --size 200M --failure oom --seed 1

Writes OUT/rank_0000.log ...: iteration lines of Megatron, HF dictionaries, DeepSpeed steps and timers, NCCL INFO, loader debug,
coloured logger lines, progress bars redrawn with CR, a 100 KB line now and then. One rank fails in the last step; the others
time out waiting for it. Failures: none, oom, nan, segfault, hang.
"""
import argparse
import os
import random
import time

FAILURES = ("none", "oom", "nan", "segfault", "hang")
BEGIN = 1767225600  # 2026-01-01
TIMEOUT_S = 600
HOST = "trn-%02d"


def stamp(t, form="%Y-%m-%d %H:%M:%S"):
    return time.strftime(form, time.gmtime(t))


def blocks_of(rank, ranks, rnd):
    """Step texts with %-slots d (date) n (step) l (loss) g (grad norm) m (milliseconds), as bytes templates."""
    nccl = "%s:%d:%d [%d] NCCL INFO " % (HOST % (rank // 8), 4000 + rank, 4800 + rank, rank % 8)

    def megatron():
        return (" [%(d)s] iteration %(n)8d/  800000 | consumed samples: %(n)12d | elapsed time per iteration (ms): %(m)s | learning rate: "
                "1.500E-04 | global batch size:   256 | lm loss: %(l)sE+00 | loss scale: 1.0 | grad norm: %(g)s | "
                "number of skipped iterations:   0 | number of nan iterations:   0 |\n")

    def trainer():
        return "{'loss': %(l)s, 'grad_norm': %(g)s, 'learning_rate': 2.25e-05, 'epoch': 0.42}\n"

    def deepspeed():
        return ("[%%(d)s,%03d] [INFO] [logging.py:128:log_dist] [Rank %d] step=%%(n)d, skipped=0, lr=[3e-05, 3e-05], mom=[(0.9, 0.95)]\n"
                "[%%(d)s,%03d] [INFO] [timer.py:264:stop] epoch=0/micro_step=%%(n)d/global_step=%%(n)d, RunningAvgSamplesPerSec=%d.%04d, "
                "CurrSamplesPerSec=%d.%04d, MemAllocated=31.07GB, MaxMemAllocated=66.9GB\n"
                % (rnd.randrange(1000), rank, rnd.randrange(1000), rnd.randrange(40, 60), rnd.randrange(10**4), rnd.randrange(40, 60),
                   rnd.randrange(10**4)))

    def bars():
        draw = "".join("\r%4d%%%%|%s%s| %%(n)d/800000 [%02d:%02d<19:%02d:07, %d.%02ds/it]" % (
            k, "\u2588" * k, " " * (9 - k), rnd.randrange(60), rnd.randrange(60), rnd.randrange(60), rnd.randrange(1, 4), rnd.randrange(100))
            for k in range(rnd.randrange(2, 8)))
        return draw + rnd.choice(("\n", ""))

    def collective():
        return "".join(nccl + "%s: opCount %x sendbuff 0x7f%010x recvbuff 0x7f%010x count %d datatype %d op 0 root 0 comm 0x%012x "
                       "[nranks=%d] stream 0x%012x\n" % (rnd.choice(("AllReduce", "AllGather", "ReduceScatter")), rnd.getrandbits(20),
                                                        rnd.getrandbits(40), rnd.getrandbits(40), 1 << rnd.randrange(8, 26), rnd.choice((7, 9)),
                                                        0x55aa00000000 + rank, ranks, rnd.getrandbits(40)) for _ in range(rnd.randrange(2, 12)))

    def loader():
        return "".join("%%(d)s,%03d DEBUG loader: worker %d took shard /mnt/corpus/%05d.bin at %d, %d waiting, 0 failed\n"
                       % (rnd.randrange(1000), rnd.randrange(8), rnd.randrange(2048), rnd.getrandbits(33), rnd.randrange(64))
                       for _ in range(rnd.randrange(3, 12)))

    def colour():
        return ("\033[36m%%(d)s.%03d\033[0m | \033[1mINFO\033[0m | pretrain.loop:tick:%d - step=%%(n)d loss=%%(l)s tokens=%d\n"
                % (rnd.randrange(1000), rnd.choice((112, 127, 140)), rnd.getrandbits(24)))

    def words():
        return rnd.choice(("%(d)s WARNING store: slow answer of shard %(n)d, trying again, errors=0\n",
                           "eval at %(n)d: ppl=%(l)s error_rate=0.1%(n)d\n",
                           "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py:1762: FutureWarning: hooks will change\n"))

    kinds = [megatron] * 8 + [trainer] * 4 + [deepspeed] * 6 + [bars] * 7 + [collective] * 6 + [loader] * 8 + [colour] * 6 + [words] * 2
    return ["".join(rnd.choice(kinds)() for _ in range(rnd.randrange(4, 12))) for _ in range(48)]


def last_words(rank, first, kind, ranks, t, step):
    if kind == "none":
        return "%s INFO train: reached step %d, saved, exiting\n" % (stamp(t), step)
    if kind == "nan":
        bad = " [%s] iteration %8d/  800000 | elapsed time per iteration (ms): 2100.0 | learning rate: 1.500E-04 | lm loss: nan | loss scale: 1.0 | grad norm: nan |\n"
        return "".join(bad % (stamp(t + i), step + i) for i in range(8)) + "RuntimeError: loss is nan at step %d\n" % (step + 7)
    if rank == first and kind == "oom":
        return ("Traceback (most recent call last):\n  File \"/srv/job/pretrain.py\", line 311, in step\n    out = model(batch)\n"
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU %d has a total capacity of 79.11 GiB of which "
                "0.61 GiB is free.\n" % (rank % 8))
    if rank == first and kind == "segfault":
        return "Fatal Python error: Segmentation fault\n\nThread 0x00007f2c4e8f2640 (most recent call first):\n  File \"/srv/job/data.py\", line 52 in fetch\n"
    if rank == first:
        return ""
    return ("[rank%d]:[E%s.000112233 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, "
            "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=%d) ran for %d milliseconds before timing out.\n"
            % (rank, stamp(t + TIMEOUT_S, "%m%d %H:%M:%S"), rank, step, TIMEOUT_S * 1000, TIMEOUT_S * 1000 + rank % 97))


def write_rank(path, rank, a, budget):
    rnd = random.Random("%d/%d" % (a.seed, rank))
    blocks = blocks_of(rank, a.ranks, rnd)
    long_line = "batch ids: [" + ", ".join(str(rnd.randrange(50000)) for _ in range(15000)) + "]\n"
    first = random.Random(a.seed).randrange(a.ranks)
    step, done = 0, 0
    with open(path, "wb", buffering=1 << 20) as out:
        while done < budget:
            step += 1
            text = blocks[rnd.randrange(len(blocks))] % {
                "d": stamp(BEGIN + 2 * step), "n": step, "l": "%.6f" % (1.9 + rnd.random() / 2), "g": "%.3f" % rnd.uniform(0.2, 0.8),
                "m": "%.1f" % rnd.uniform(2000, 2100)}
            done += out.write((text + (long_line if step % 4000 == 0 else "")).encode())
        out.write(last_words(rank, first, a.failure, a.ranks, BEGIN + 2 * step, step).encode())


def size_of(text):
    unit = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1].upper(), 1)
    return int(float(text[:-1] if unit > 1 else text) * unit)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--size", type=size_of, default=size_of("100M"), help="of all files together; K, M and G are powers of ten")
    p.add_argument("--failure", choices=FAILURES, default="oom")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for rank in range(a.ranks):
        write_rank(os.path.join(a.out, "rank_%04d.log" % rank), rank, a, a.size // a.ranks)


if __name__ == "__main__":
    main()
