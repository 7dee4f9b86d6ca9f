#!/usr/bin/python3
"""Starts a program as the unit does where no systemd runs: in a root of its own, as a user, without capabilities, with the unit's filter
of system calls and its refusal of memory that is both written and executed.

    as-unit.py UNIT ROOT USER PROGRAM ARGUMENT...

Needs root, python3-seccomp, and systemd-analyze for the names of the sets of calls. The environment is passed on as it is.
"""

import ctypes
import errno
import os
import subprocess
import sys

import seccomp

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, CAPABILITIES = 24, 38, 64
PROT_WRITE, PROT_EXEC = 2, 4


def calls_of(name):
    """The calls of a set, with those of the sets in it."""
    if not name.startswith("@"):
        return {name}
    said = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    names = {line.strip() for line in said.splitlines()[1:] if line.strip() and not line.strip().startswith("#")}
    return set().union(*(calls_of(each) for each in names)) if names else set()


def filter_of(unit):
    """The unit's filter: what its lines allow, less what they take away."""
    allowed = set()
    for line in open(unit, encoding="utf-8"):
        if line.startswith("SystemCallFilter="):
            words = line.partition("=")[2].strip()
            named = set().union(*(calls_of(name) for name in words.lstrip("~").split()))
            allowed = allowed - named if words.startswith("~") else allowed | named
    # systemd lets a program begin and end, whatever the unit says.
    allowed |= {"execve", "exit", "exit_group", "rt_sigreturn"}
    rules = seccomp.SyscallFilter(defaction=seccomp.ERRNO(errno.EPERM))
    exec_too = seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, 0)
    for name in sorted(allowed):
        try:
            if name in ("mprotect", "pkey_mprotect"):
                rules.add_rule(seccomp.ALLOW, name, exec_too)
            elif name == "mmap":
                # What is loaded is executed, and not written.
                rules.add_rule(seccomp.ALLOW, name, exec_too)
                rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC))
            else:
                rules.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError, OSError):
            pass  # A call of another architecture, or one that this machine's library does not know.
    return rules


def groups_of(unit, root):
    """The numbers of the unit's further groups, in the root."""
    names = [name for line in open(unit, encoding="utf-8") if line.startswith("SupplementaryGroups=")
             for name in line.partition("=")[2].split()]
    groups = dict(line.split(":")[0:3:2] for line in open(f"{root}/etc/group", encoding="utf-8"))
    return [int(groups[name]) for name in names]


def main():
    unit, root, user, *program = sys.argv[1:]
    rules, groups = filter_of(unit), groups_of(unit, root)
    libc = ctypes.CDLL(None, use_errno=True)
    os.chroot(root)
    os.chdir("/")
    for capability in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups(groups)
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    os.umask(0o077)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    rules.load()
    os.execve(program[0], program, os.environ)


if __name__ == "__main__":
    main()
