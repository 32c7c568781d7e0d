"""Carries a line of text from one replica to another. Not every machine has netcat.

`post.py send HOST PORT TEXT` hands TEXT to whoever listens there, waiting until someone does.
`post.py receive HOST PORT N` prints the first N lines that arrive.
"""

import socket
import sys
import time

PATIENCE_SECONDS = 30


def send(host: str, port: int, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with socket.create_connection((host, port), timeout=PATIENCE_SECONDS) as peer:
                peer.sendall(text.encode() + b"\n")
                return
        except ConnectionRefusedError:  # replicas start in any order; the other may not listen yet
            if time.monotonic() > deadline:
                sys.exit(f"nobody listens at {host}:{port}")
            time.sleep(0.02)


def receive(host: str, port: int, count: int) -> None:
    with socket.create_server((host, port)) as door:
        door.settimeout(PATIENCE_SECONDS)
        for _ in range(count):
            try:
                peer, _ = door.accept()
            except TimeoutError:
                sys.exit(f"nobody called at {host}:{port} for {PATIENCE_SECONDS} s")
            with peer, peer.makefile() as letter:
                print(letter.readline().rstrip("\n"), flush=True)


if __name__ == "__main__":
    verb, host, port, what = sys.argv[1:]
    if verb == "send":
        send(host, int(port), what)
    else:
        receive(host, int(port), int(what))
