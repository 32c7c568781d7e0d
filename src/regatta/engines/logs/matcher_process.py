"""The other end of `matcher.Matcher`: a script of its own, which imports nothing of ours.

Reads a pattern, then lists of lines; answers each list with one byte a line. It allows itself so
much processor time for a list and no more: the kernel ends it in the middle of a match, where
Python itself could not be interrupted. It also ends with its parent, whose pipe closes.
"""

import marshal
import re
import signal
import sys


def main(seconds: float) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    pattern = re.compile(marshal.load(sys.stdin.buffer))
    while True:
        try:
            texts = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = bytes(pattern.search(text) is not None for text in texts)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(found)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]))
