"""A refusal of the API server, as a person reads it in a job's message."""

from __future__ import annotations

import json

import pytest

from regatta.engines.kubernetes.api.kube_errors import refusal
from regatta.engines.kubernetes.api.refusal_words import LONGEST, in_a_sentence

ASKED = "POST /api/v1/namespaces/default/pods"
CONTEXT = "spec.containers[0].securityContext"
CLASH = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
AS_JSON = '{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"Note":"a } in it"}'
AS_STRUCT = 'core.SecurityContext{Drop:(*core.Capabilities)(nil), Add:[]string{}, Name:"}"}'


def said(message: str, *causes: tuple[str, str], status: int = 422, reason: str = "Invalid") -> str:
    told = [{"field": field, "message": text} for field, text in causes]
    body = {"code": status, "reason": reason, "message": message, "details": {"causes": told}}
    return in_a_sentence(refusal(status, json.dumps(body).encode(), ASKED))


@pytest.mark.parametrize("quoted", [AS_JSON, AS_STRUCT, f"&{AS_STRUCT}", f"[]{AS_STRUCT}"])
def test_an_object_that_is_refused_is_not_quoted(quoted: str) -> None:
    cause = f"Invalid value: {quoted}: {CLASH}"
    whole = f'Pod "job-worker-0" is invalid: {CONTEXT}: {cause}'
    assert said(whole, (CONTEXT, cause)) == f"{CONTEXT}: {CLASH}"
    assert said(whole) == f'Pod "job-worker-0" is invalid: {CONTEXT}: {CLASH}'


def test_an_object_that_never_ends_ends_with_the_message() -> None:
    assert said('Pod "a" is invalid: x: Invalid value: {"a":{"b":1') == (
        'Pod "a" is invalid: x: Invalid value:'
    )


WORDS = {
    "a number is worth reading": (
        [("spec.a.runAsUser", "Invalid value: -5: must be between 0 and 9, inclusive")],
        "spec.a.runAsUser: Invalid value: -5: must be between 0 and 9, inclusive",
    ),
    "the first of several is told, and how many there are": (
        [("spec.image", "Required value"), ("spec.b", "Forbidden"), ("spec.c", "Forbidden")],
        "spec.image: Required value (and 2 more)",
    ),
    "a cause without a field": ([("", "the name is taken")], "the name is taken"),
}


@pytest.mark.parametrize("what", WORDS)
def test_what_is_wrong_is_told_with_its_place(what: str) -> None:
    causes, words = WORDS[what]
    assert said("Pod is invalid: a list of everything", *causes) == words


def test_a_value_of_another_type_is_told_without_the_server_s_own_types() -> None:
    message = (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
        "struct field SecurityContext.spec.containers.securityContext.runAsNonRoot of type bool"
    )
    assert said(message, status=400, reason="BadRequest") == (
        'Pod in version "v1" cannot be handled as a Pod: '
        "spec.containers.securityContext.runAsNonRoot is a string; it should be a bool"
    )


def test_one_sentence_is_enough() -> None:
    quota = 'pods "a" is forbidden: exceeded quota: few, requested: pods=1, limited: pods=2.5'
    assert said(quota, status=403, reason="Forbidden") == quota
    assert said(f"{quota}. Ask Ann. She knows.", status=403) == f"{quota}."
    assert said("webhook denied the request: no root\nsee the wiki", status=403) == (
        "webhook denied the request: no root"
    )


def test_causes_of_a_refused_right_are_not_what_is_wrong_with_the_object() -> None:
    assert said("pods is forbidden", ("spec", "no"), status=403) == "pods is forbidden"


def test_a_long_refusal_is_cut_at_a_word() -> None:
    words = said("denied: " + "hostPort, " * 100, status=403)
    assert words.endswith("hostPort ...")
    assert len(words) <= LONGEST
    assert said("x" * LONGEST, status=403) == "x" * LONGEST
