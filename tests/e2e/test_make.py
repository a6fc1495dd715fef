#!/usr/bin/env python3
"""`make build` after a configure that failed (a package was missing) configures again, and once it has worked no more.

  test_make.py SOURCE_DIR

Runs the project's own Makefile and presets with the real CMake, over a project of three lines in place of the sources.
"""
import os, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

SOURCE, = usage.arguments(__doc__, "SOURCE_DIR")
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(three_lines C)
if(NOT EXISTS "${CMAKE_SOURCE_DIR}/package")
    message(FATAL_ERROR "a package is missing")
endif()
foreach(target faultrank fr_numerics)
    add_custom_target(${target} COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_SOURCE_DIR}/${target}.built)
endforeach()
"""


def make(folder):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    p = subprocess.run(["make", "build"], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=300)
    return p.returncode, p.stdout


with tempfile.TemporaryDirectory() as folder:
    for name in ("Makefile", "CMakePresets.json"):
        shutil.copy(os.path.join(SOURCE, name), folder)
    os.mkdir(folder + "/tools")
    with open(folder + "/tools/install-packages", "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod(folder + "/tools/install-packages", 0o755)
    with open(folder + "/CMakeLists.txt", "w") as f:
        f.write(PROJECT)
    checks = []
    code, said = make(folder)
    checks.append((code != 0 and "a package is missing" in said, "a missing package stops the build", said))
    open(folder + "/package", "w").close()
    code, said = make(folder)
    checks.append((code == 0 and os.path.exists(folder + "/faultrank.built"), "the next build works", said))
    code, said = make(folder)
    checks.append((code == 0 and "Configuring done" not in said, "a third does not configure", said))
for ok, what, said in checks:
    if not ok:
        print("not ok -", what, "\n", said[-2000:])
sys.exit(not all(ok for ok, _, _ in checks))
