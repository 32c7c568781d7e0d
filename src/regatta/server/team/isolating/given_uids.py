"""Which uid of this machine was given to an account by which server.

Several servers may give out uids of the same range: who tries one in a home folder and then runs
another for good has two. A link for each uid, in a folder of the machine's, leads to the work
folder of the server that gave it: made in one step, so that of two servers one has it, and kept for
good, because files of that uid may be anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regatta.api.errors import BadSetting, NotPossible

REGISTER = Path("/var/lib/regatta/uids")


class GivenUids:
    def __init__(self, register: Path, work: Path) -> None:
        """`work`: this server's own."""
        self._register, self._work = register, Path(os.path.realpath(work))

    def open(self) -> None:
        """Raises BadSetting."""
        try:
            for folder in (*reversed(self._register.parents), self._register):
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    folder.chmod(0o755)  # whatever our mask is
        except OSError as error:
            raise BadSetting(
                f"register: {self._register}, where the machine keeps which uid was given to whom, "
                f"cannot be made ({error.strerror})"
            ) from None

    def take(self, uid: int) -> bool:
        """For an account that has none yet: nobody is to have had it. Raises NotPossible."""
        place = self._register / str(uid)
        with self._telling():
            try:
                place.symlink_to(self._work)
            except FileExistsError:
                return self._giver(uid) == self._work
            self._keep()
        return True

    def claim(self, uid: int) -> str:
        """For an account that has it already; why it cannot, or empty. Raises NotPossible."""
        if why := self.why_anothers(uid):
            return why
        if self._giver(uid) == self._work:
            return ""
        with self._telling():
            with suppress(FileNotFoundError):
                (self._register / str(uid)).unlink()
            with suppress(FileExistsError):  # another claims it this moment: the next look tells
                (self._register / str(uid)).symlink_to(self._work)
            self._keep()
        return ""

    def why_anothers(self, uid: int) -> str:
        """Of a uid that is somebody's already. A server whose part for that uid is no more has none
        there to lose: its work folder may have been moved here. Raises NotPossible."""
        giver = self._giver(uid)
        if giver is None or giver == self._work or not os.path.lexists(giver / str(uid)):
            return ""
        return (
            f"that was given to an account by the server whose jobs work in {giver}; if there is "
            f"no such server any more, remove {giver / str(uid)}"
        )

    def _giver(self, uid: int) -> Path | None:
        with self._telling(), suppress(FileNotFoundError):
            return Path(os.readlink(self._register / str(uid)))
        return None

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NotPossible(
                f"{self._register}, where the machine keeps which uid was given to whom, cannot be "
                f"used ({error.strerror}); an admin of the machine looks at it"
            ) from None

    def _keep(self) -> None:
        """Safe on disk: after a power cut nobody gets it again."""
        fd = os.open(self._register, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
