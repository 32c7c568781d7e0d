"""Refusals in OpenPAI's words: its clients look at the code, and some at the text.

Codes, statuses and texts are a contract with programs that others wrote, odd spellings included
("is not allow"). Whatever has no code there gets one of ours and a sentence that says what to do.
"""

from __future__ import annotations

import math

from regatta.api.errors import RegattaError

GUEST = "Guest is not allowed to do this operation."
INVALID_TOKEN = "Your token is invalid."
NO_APPLICATIONS = "Applications are not allowed to do this operation."
ADMINS_ONLY = "Non-admin is not allow to do this operation."
WRONG_OLD_PASSWORD = "Pls input the correct password."
INCORRECT_PASSWORD = "Password is incorrect."
WRONG_SIGN_IN = "User name or password is incorrect."


class OpenPaiError(RegattaError):
    """One kind for all of them: nobody inside acts on which it is."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class TooManyRequests(OpenPaiError):
    """`retry_after`: whole seconds, for the header of that name."""

    def __init__(self, message: str, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        again = "1 second" if self.retry_after == 1 else f"{self.retry_after} seconds"
        super().__init__(429, "TooManyRequestsError", f"{message}; try again in {again}")


class NoVirtualCluster(OpenPaiError):
    """400 where somebody sends its name, 404 where it is asked for by name; to v1 they are one."""

    def __init__(self, name: str, status: int, instead: str) -> None:
        said = f"Virtual cluster {name} is not found. {instead}".rstrip()
        super().__init__(status, "NoVirtualClusterError", said)
        self.name, self.instead = name, instead


def guest() -> OpenPaiError:
    return OpenPaiError(401, "UnauthorizedUserError", GUEST)


def invalid_token() -> OpenPaiError:
    return OpenPaiError(401, "UnauthorizedUserError", INVALID_TOKEN)


def forbidden(message: str) -> OpenPaiError:
    return OpenPaiError(403, "ForbiddenUserError", message)


def reserved_key(message: str) -> OpenPaiError:
    """For what the system itself keeps, whoever asks."""
    return OpenPaiError(403, "ForbiddenKeyError", message)


def invalid_parameters(message: str) -> OpenPaiError:
    return OpenPaiError(400, "InvalidParametersError", message)


def no_user(name: str, status: int = 404) -> OpenPaiError:
    """404, but 400 where somebody signs in."""
    return OpenPaiError(status, "NoUserError", f"User {name} is not found.")


def incorrect_password() -> OpenPaiError:
    return OpenPaiError(400, "IncorrectPasswordError", INCORRECT_PASSWORD)


def wrong_sign_in() -> OpenPaiError:
    """Of the two, in one answer: it tells nobody which names there are."""
    return OpenPaiError(400, "IncorrectPasswordError", WRONG_SIGN_IN)


def user_exists(name: str) -> OpenPaiError:
    return OpenPaiError(409, "ConflictUserError", f"User name {name} already exists.")


def name_of_another(name: str) -> OpenPaiError:
    """Records know owners by name: who got it next would find what was the other's."""
    return OpenPaiError(
        409,
        "ConflictUserError",
        f"User name {name} was that of an account which is gone, and jobs of it are on record; "
        "take another name, or delete those jobs first.",
    )


def remove_admin(name: str) -> OpenPaiError:
    said = f"Admin {name} is not allowed to remove."
    return OpenPaiError(403, "RemoveAdminError", said)


def no_group(name: str) -> OpenPaiError:
    return OpenPaiError(404, "NoGroupError", f"Group {name} is not found.")


def group_exists(name: str) -> OpenPaiError:
    return OpenPaiError(409, "ConflictGroupError", f"Group name {name} already exists.")


def no_virtual_cluster(name: str, status: int = 400, *, instead: str = "") -> NoVirtualCluster:
    """`instead`: a sentence on what may be written."""
    return NoVirtualCluster(name, status, instead)


def default_cluster_stays(verb: str) -> OpenPaiError:
    return forbidden(f"{verb} operation to default vc isn't allowed")


def no_storage(name: str) -> OpenPaiError:
    said = (
        f"Storage {name} is not found: none is configured on this server. Take it out of the "
        "config's extras, and have the commands use folders that every task can reach, such as "
        "those below $PAI_DEFAULT_FS_URI."
    )
    return OpenPaiError(404, "NoStorageError", said)


def no_job(name: str) -> OpenPaiError:
    return OpenPaiError(404, "NoJobError", f"Job {name} is not found.")
