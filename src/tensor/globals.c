/* SPDX-License-Identifier: Apache-2.0 */
/* The lists. A dotted name reaches through modules ("torch" "os.system" is os.system in protocol
 * 4), so every part of it is looked at. */
#include "tensor/globals.h"

#include "faultrank/numerics.h"

#include <stdio.h>

static const char *const tensors[] = {"torch._utils._rebuild_tensor",
                                      "torch._utils._rebuild_tensor_v2",
                                      "torch._utils._rebuild_tensor_v3",
                                      "torch._utils._rebuild_parameter",
                                      "torch._utils._rebuild_parameter_with_state",
                                      "torch._utils._rebuild_qtensor",
                                      "torch._utils._rebuild_sparse_tensor",
                                      "torch._utils._rebuild_sparse_csr_tensor",
                                      "torch._utils._rebuild_nested_tensor",
                                      "torch._utils._rebuild_meta_tensor_no_storage",
                                      "torch._utils._rebuild_wrapper_subclass",
                                      "torch._utils._rebuild_device_tensor_from_numpy",
                                      "torch._utils._rebuild_device_tensor_from_cpu_tensor",
                                      "torch._utils._rebuild_xla_tensor",
                                      "torch._tensor._rebuild_from_type",
                                      "torch._tensor._rebuild_from_type_v2",
                                      NULL};

/* A star at the end stands for any rest. */
static const char *const plain[] = {"collections.OrderedDict",
                                    "collections.defaultdict",
                                    "collections.deque",
                                    "collections.Counter",
                                    "argparse.Namespace",
                                    "_codecs.encode",
                                    "builtins.set",
                                    "builtins.frozenset",
                                    "builtins.list",
                                    "builtins.dict",
                                    "builtins.tuple",
                                    "builtins.int",
                                    "builtins.float",
                                    "builtins.bool",
                                    "builtins.str",
                                    "builtins.bytes",
                                    "builtins.bytearray",
                                    "builtins.complex",
                                    "builtins.slice",
                                    "builtins.range",
                                    "builtins.object",
                                    "__builtin__.set",
                                    "__builtin__.frozenset",
                                    "__builtin__.list",
                                    "__builtin__.dict",
                                    "__builtin__.tuple",
                                    "__builtin__.int",
                                    "__builtin__.long",
                                    "__builtin__.float",
                                    "__builtin__.bool",
                                    "__builtin__.unicode",
                                    "__builtin__.bytearray",
                                    "__builtin__.complex",
                                    "__builtin__.slice",
                                    "__builtin__.xrange",
                                    "__builtin__.object",
                                    "copy_reg._reconstructor",
                                    "copyreg._reconstructor",
                                    "numpy.core.multiarray.scalar",
                                    "numpy.core.multiarray._reconstruct",
                                    "numpy._core.multiarray.scalar",
                                    "numpy._core.multiarray._reconstruct",
                                    "numpy.core.numeric._frombuffer",
                                    "numpy._core.numeric._frombuffer",
                                    "numpy.dtype",
                                    "numpy.dtypes.*",
                                    "numpy.ndarray",
                                    "torch.Size",
                                    "torch.device",
                                    "torch.per_tensor_affine",
                                    "torch.per_channel_affine",
                                    "torch.per_channel_affine_float_qparams",
                                    "torch.strided",
                                    "torch.sparse_*",
                                    "torch.contiguous_format",
                                    "torch.preserve_format",
                                    "torch.channels_last*",
                                    "torch.Tensor",
                                    "torch.Generator",
                                    "torch.nn.parameter.Parameter",
                                    "torch.nn.parameter.Buffer",
                                    "torch.serialization._get_layout",
                                    "torch.storage.*Storage",
                                    "torch.jit._pickle.*",
                                    "__torch__.*",
                                    "datetime.datetime",
                                    "datetime.timedelta",
                                    "types.SimpleNamespace",
                                    "pathlib.PosixPath",
                                    "pathlib.Path",
                                    "pathlib.PurePosixPath",
                                    "torch.distributed.checkpoint.metadata.*",
                                    "torch.distributed.checkpoint.filesystem._StorageInfo",
                                    "torch.distributed.checkpoint.filesystem._StoragePrefix",
                                    "torch.distributed.checkpoint.filesystem.StorageMeta",
                                    "torch.distributed._shard.sharded_tensor.*",
                                    "torch.distributed._shard.metadata.*",
                                    "torch.distributed._shard.sharding_spec.*",
                                    "torch.distributed._tensor.DTensor",
                                    "torch.distributed._tensor.api.DTensor",
                                    "torch.distributed._tensor.placement_types.*",
                                    "torch.distributed.tensor.DTensor",
                                    "torch.distributed.tensor._api.DTensor",
                                    "torch.distributed.tensor.placement_types.*",
                                    "torch.distributed.tensor._dtensor_spec.*",
                                    "torch.distributed.device_mesh.DeviceMesh",
                                    NULL};

static const char *const forbidden[] = {"builtins.eval",
                                        "builtins.exec",
                                        "builtins.execfile",
                                        "builtins.compile",
                                        "builtins.open",
                                        "builtins.input",
                                        "builtins.__import__",
                                        "builtins.setattr",
                                        "builtins.delattr",
                                        "builtins.globals",
                                        "builtins.locals",
                                        "builtins.vars",
                                        "builtins.breakpoint",
                                        "builtins.apply",
                                        "builtins.map",
                                        "builtins.filter",
                                        "builtins.exit",
                                        "builtins.quit",
                                        "builtins.type",
                                        "operator.attrgetter",
                                        "operator.methodcaller",
                                        "_operator.attrgetter",
                                        "_operator.methodcaller",
                                        "functools.reduce",
                                        "_io.*",
                                        "io.open",
                                        "io.open_code",
                                        "io.FileIO",
                                        "codecs.open",
                                        "torch.load",
                                        "torch.save",
                                        "torch.serialization.load",
                                        "torch.storage._load_from_bytes",
                                        "torch.hub.*",
                                        "torch.jit.load",
                                        "torch.utils.cpp_extension.*",
                                        "torch.ops.*",
                                        "code.interact",
                                        "code.Interactive*",
                                        "commands.getoutput",
                                        "commands.getstatusoutput",
                                        "profile.run",
                                        "profile.Profile",
                                        "trace.Trace",
                                        "torch.package.*",
                                        "torch._inductor.*",
                                        "torch._dynamo.*",
                                        "torch.fx.*",
                                        "numpy.load",
                                        "numpy.testing.*",
                                        "numpy.f2py.*",
                                        "numpy.distutils.*",
                                        NULL};

/* Modules nothing of which belongs into a checkpoint, as the first part of a name. */
static const char *const modules[] = {"popen2",      "imp",
                                      "codeop",      "webbrowser",
                                      "pdb",         "bdb",
                                      "cProfile",    "timeit",
                                      "pip",         "setuptools",
                                      "distutils",   "http",
                                      "httplib",     "urllib",
                                      "urllib2",     "requests",
                                      "ftplib",      "smtplib",
                                      "telnetlib",   "ssl",
                                      "asyncio",     "multiprocessing",
                                      "signal",      "tempfile",
                                      "tarfile",     "zipfile",
                                      "pickle",      "_pickle",
                                      "cPickle",     "dill",
                                      "cloudpickle", "marshal",
                                      "types",       "gc",
                                      "inspect",     "pydoc",
                                      "pkgutil",     "zipimport",
                                      "venv",        "idlelib",
                                      "lib2to3",     "doctest",
                                      "unittest",    "xmlrpc",
                                      "aiohttp",     "threading",
                                      "_thread",     "linecache",
                                      "sqlite3",     NULL};

/* The same, wherever they stand in a name. */
static const char *const anywhere[] = {"os",
                                       "posix",
                                       "nt",
                                       "sys",
                                       "subprocess",
                                       "_posixsubprocess",
                                       "pty",
                                       "socket",
                                       "_socket",
                                       "ctypes",
                                       "_ctypes",
                                       "importlib",
                                       "_frozen_importlib",
                                       "runpy",
                                       "shutil",
                                       "__import__",
                                       "__globals__",
                                       "__builtins__",
                                       "__subclasses__",
                                       "__code__",
                                       NULL};

/* Whether `full` is `row`; "a.*b" is any name of module a that ends in b. */
static bool matches(fr_sv full, const char *row)
{
    const char *star = strchr(row, '*');
    if (star == NULL) {
        return fr_sv_eq(full, fr_sv_z(row));
    }
    fr_sv head = {row, (size_t)(star - row)}, tail = fr_sv_z(star + 1);
    return full.n >= head.n + tail.n && fr_sv_starts(full, head) && fr_sv_ends(full, tail);
}

static bool any(fr_sv full, const char *const *rows)
{
    for (; *rows != NULL; rows++) {
        if (matches(full, *rows)) {
            return true;
        }
    }
    return false;
}

static bool is_word(fr_sv part, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_eq(part, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

static bool reaches_code(fr_sv full)
{
    fr_sv part, rest = full;
    for (int i = 0; rest.n > 0; i++) {
        (void)fr_sv_cut(rest, '.', &part, &rest);
        if ((i == 0 && is_word(part, modules)) || is_word(part, anywhere)) {
            return true;
        }
    }
    return false;
}

uint8_t fr_global_kind(fr_sv module, fr_sv name)
{
    char text[512];
    bool untyped;
    if (fr_sv_eq(module, FR_SV("__builtin__")) && !fr_sv_starts(name, FR_SV("l")) &&
        !fr_sv_starts(name, FR_SV("u"))) {
        module = FR_SV(
            "builtins"); /* Python 2; its own "long" and "unicode" are rows of their own */
    }
    int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)fr_sv_head(module, 200).n, module.p,
                     (int)fr_sv_head(name, 200).n, name.p);
    fr_sv full = {text, (size_t)n};
    if (any(full, tensors)) {
        return FR_GLOBAL_TENSOR;
    }
    if (any(full, forbidden) || (reaches_code(full) && !any(full, plain)) || module.n > 200 ||
        name.n > 200) {
        return FR_GLOBAL_FORBIDDEN;
    }
    if (any(full, plain) || (fr_sv_eq(module, FR_SV("torch")) &&
                             (fr_storage_dtype(name, &untyped) != FR_DTYPE_UNKNOWN || untyped))) {
        return FR_GLOBAL_PLAIN;
    }
    return FR_GLOBAL_UNKNOWN;
}

uint8_t fr_storage_dtype(fr_sv name, bool *ret_untyped)
{
    static const struct { const char *name; uint8_t dtype;
    } classes[] = {{"FloatStorage", FR_F32},
                   {"DoubleStorage", FR_F64},
                   {"HalfStorage", FR_F16},
                   {"BFloat16Storage", FR_BF16},
                   {"LongStorage", FR_I64},
                   {"IntStorage", FR_I32},
                   {"ShortStorage", FR_I16},
                   {"CharStorage", FR_I8},
                   {"ByteStorage", FR_U8},
                   {"BoolStorage", FR_BOOL},
                   {"ComplexFloatStorage", FR_C64},
                   {"ComplexDoubleStorage", FR_C128},
                   {"QInt8Storage", FR_I8},
                   {"QUInt8Storage", FR_U8},
                   {"QInt32Storage", FR_I32},
                   {"qint8", FR_I8},
                   {"quint8", FR_U8},
                   {"qint32", FR_I32},
#define FR_X(id, value, bits, text, st, torch) {torch, FR_##id},
                   FR_DTYPES(FR_X)
#undef FR_X
    };
    *ret_untyped = fr_sv_eq(name, FR_SV("UntypedStorage")) ||
                   fr_sv_eq(name, FR_SV("_UntypedStorage"));
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (fr_sv_eq(name, fr_sv_z(classes[i].name))) {
            return classes[i].dtype;
        }
    }
    return FR_DTYPE_UNKNOWN;
}
