"""Spark's Python processes as forks of one that has imported what they need: each would take a second for that else.

Spark starts a Python for each worker daemon, and for each start of a continuous query. The tests' session gives it a script in the
place of Python, which hands its arguments, environment and open files to the process that forks, and lives as long as the fork.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["forking"]

#: What stands in the place of Python. A fork that Spark wants to end is told; one that has ended ends this, too.
_SCRIPT = """#!{python} -ISE
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode() + b"\\n")
fork = int(server.recv(32))
signal.signal(signal.SIGTERM, lambda number, frame: os.kill(fork, number))
server.recv(1)
"""


@contextmanager
def forking(folder: Path) -> Iterator[str]:
    """The path of what stands in the place of Python, while the process that forks runs."""
    address, script = folder / "forks", folder / "python"
    script.write_text(_SCRIPT.format(python=sys.executable, address=str(address)))
    script.chmod(0o755)
    command = [sys.executable, "-m", "tests.spark.forks", str(address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the process that forks did not start"
        yield str(script)
        process.communicate()


def serve(address: str) -> None:
    """Fork for each that connects, until the standard input ends: with the process that started this one."""
    import pandas  # noqa: F401
    import pyspark.worker  # noqa: F401

    import stretto.spark.batch.worker
    import stretto.spark.streaming.operator

    with suppress(ImportError):  # PySpark 3.5 has no state for Python
        import stretto.spark.streaming.processor  # noqa: F401

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _become(client)
            client.close()


def _become(client: socket.socket) -> None:
    """Be the Python that Spark asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(client, 1, 3)
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    arguments, environment, folder = json.loads(client.makefile().readline())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    client.sendall(str(os.getpid()).encode())
    flag, module, *sys.argv[1:] = arguments
    assert flag == "-m"
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
