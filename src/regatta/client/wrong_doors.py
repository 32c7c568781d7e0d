"""What answers at an address, where it is not what was asked for: HTTPS in place of HTTP, the
reverse, or a certificate that this machine does not trust. All look like nobody's answer at first.
"""

from __future__ import annotations

import os
import ssl

from regatta.api.errors import WrongDoor
from regatta.client.whereabouts import Place

#: How long a port that hung up may take to say that it speaks TLS.
PROBE_SECONDS = 2.0
#: As OpenSSL numbers them: signed by itself, or by somebody who is not known here.
_NOBODY_KNOWN = {18, 19, 20, 21}


def of_handshake(place: Place, failed: BaseException | None) -> WrongDoor | None:
    """Why TLS did not come about, where that says something."""
    if isinstance(failed, ssl.SSLCertVerificationError):
        why = failed.verify_message or str(failed)
        if failed.verify_code not in _NOBODY_KNOWN:
            return WrongDoor(f"the certificate of {place.url} is not good for that address: {why}")
        named = os.environ.get("SSL_CERT_FILE", "")
        if named and not os.access(named, os.R_OK):  # which OpenSSL passes over without a word
            return WrongDoor(
                f"the certificate of {place.url} is not trusted by this machine, and SSL_CERT_FILE "
                f"names {named}, which cannot be read; name a file that holds it, or unset it"
            )
        return WrongDoor(
            f"the certificate of {place.url} is not trusted by this machine ({why}); set "
            "SSL_CERT_FILE to the certificate, or install its CA"
        )
    if isinstance(failed, ssl.SSLError):
        return WrongDoor(
            f"{place.url} answers, but not by HTTPS; try http://{place.netloc}{place.prefix}"
        )
    return None


def of_hanging_up(place: Place) -> WrongDoor | None:
    """For a server that took a request by plain HTTP and said nothing, or what is no HTTP. Blocks
    for a moment."""
    if place.secure:
        return None
    import http.client

    context = ssl._create_unverified_context()  # it is asked nothing
    connection = http.client.HTTPSConnection(place.netloc, timeout=PROBE_SECONDS, context=context)
    try:
        connection.connect()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return WrongDoor(f"{place.url} answers, but not HTTP; try https://{place.netloc}{place.prefix}")
