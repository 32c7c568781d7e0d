"""The variables that PaddlePaddle reads, for `python train.py` and its launcher alike.

Three of them upstream never set, and CPU collective training needs them: PADDLE_CURRENT_ENDPOINT,
PADDLE_DISTRI_BACKEND, and a gloo meeting point that is not server 0's own port.
"""

from __future__ import annotations

from regatta.api.job import Job
from regatta.controller.environment.places import Place, Variable, gpus, has_device, literal, pod_ip
from regatta.controller.world import PORTS_PER_REPLICA

_ROLES = {"ps": "PSERVER", "worker": "TRAINER", "heter": "HETER_TRAINER"}

#: Of server 0's block: above the ports that a launcher counts up from the base.
_GLOO_OFFSET = PORTS_PER_REPLICA - 2

#: Gloo's rendezvous through an HTTP server in server 0, as Paddle numbers it.
_RENDEZVOUS_HTTP = "3"


def shared(job: Job, places: dict[str, list[Place]]) -> dict[str, str]:
    workers, servers = places.get("worker", []), places.get("ps", [])
    data = {
        "PADDLE_JOB_ID": job.name,
        "PADDLE_TRAINERS_NUM": str(len(workers)),
        "PADDLE_TRAINERS": ",".join(place.host for place in workers),
        "PADDLE_TRAINER_ENDPOINTS": _endpoints(workers),
        "PADDLE_MASTER": workers[0].endpoint,
        "PADDLE_NNODES": str(len(workers)),
        "TRAINER_PORTS_NUM": str(PORTS_PER_REPLICA),
        "TRAINERS": str(len(workers)),
        "PSERVERS": str(len(servers)),
    }
    if servers:
        data["PADDLE_PSERVERS_IP_PORT_LIST"] = _endpoints(servers)
        data |= _gloo(job.spec.with_gloo, servers[0])
    if places.get("heter"):
        data |= _heter(workers, places["heter"])
    return data


def own(job: Job, place: Place) -> list[Variable]:
    role = _ROLES[place.role]
    variables = [
        pod_ip(place),
        literal("PADDLE_PORT", place.port),
        # Where peers were given a name, that is what it is called in their list, whatever a
        # template's own POD_IP says.
        literal("PADDLE_CURRENT_ENDPOINT", f"{place.host or '$(POD_IP)'}:$(PADDLE_PORT)"),
        literal("PADDLE_TRAINER_ID", place.index),
        literal("TRAINER_ID", place.index),
        literal("TRAINING_ROLE", role),
        literal("PADDLE_TRAINING_ROLE", role),
    ]
    if not has_device(place.spec):
        variables.append(literal("PADDLE_DISTRI_BACKEND", "gloo"))
    if job.spec.heter is not None:
        variables += _heter_own(place)
    return variables


def _endpoints(places: list[Place]) -> str:
    return ",".join(place.endpoint for place in places)


def _gloo(level: int, server: Place) -> dict[str, str]:
    if not level:
        return {"PADDLE_WITH_GLOO": "0"}
    return {
        "PADDLE_WITH_GLOO": str(level),
        "PADDLE_GLOO_RENDEZVOUS": _RENDEZVOUS_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": f"{server.host}:{server.port + _GLOO_OFFSET}",
    }


def _heter(workers: list[Place], heter: list[Place]) -> dict[str, str]:
    return {
        "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": _endpoints(heter),
        "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST": _endpoints(heter),
        "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST": _endpoints(workers),
        "PADDLE_STAGE_TRAINERS_NUM": f"[{len(workers)}, {len(heter)}]",
        "STAGE_NUM": "2",
    }


def _heter_own(place: Place) -> list[Variable]:
    """Workers are the first stage, heter trainers the second; servers have none."""
    if place.role == "worker":
        return [literal("STAGE_ID", 1)]
    if place.role == "heter":
        device = "gpu" if gpus(place.spec) else "cpu"
        return [literal("STAGE_ID", 2), literal("HETER_DEVICE_TYPE", device)]
    return []
