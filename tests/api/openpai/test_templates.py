"""What `<% ... %>` becomes, and what stays as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.openpai.templates import Reference, parts, rendered

VALUES: dict[str, Any] = {
    "parameters": {
        "n": 3,
        "rate": 0.5,
        "yes": True,
        "text": "a b",
        "none": None,
        "list": [1, {"x": "deep"}],
        "map": {"a-b": "dashed", "0": "zero"},
        "again": "<% $parameters.n %>",
        "html": "<&\">'",
    },
    "data": {"uri": ["one", "two"]},
    "output": {"uri": "there"},
}

RENDERED = {
    "<% $parameters.n %>": "3",
    "<%$parameters.n%>": "3",
    "<%   $parameters.n\t%>": "3",
    "a<% $parameters.n %>b<% $parameters.rate %>c": "a3b0.5c",
    "<% $parameters.yes %>": "true",
    "<% $parameters.text %>": "a b",
    "<% $parameters.list[0] %>": "1",
    "<% $parameters.list[1].x %>": "deep",
    "<% $parameters.list.1.x %>": "deep",
    "<% $parameters.map.a-b %>": "dashed",
    "<% $parameters.map[0] %>": "zero",
    "<% $parameters.html %>": "<&\">'",
    "<% $data.uri[1] %>": "two",
    "<% $output.uri %>": "there",
    "<% $parameters.again %>": "<% $parameters.n %>",
}
VERBATIM = [
    "<% $parameters.unknown %>",
    "<% $parameters.list %>",
    "<% $parameters.map %>",
    "<% $parameters.none %>",
    "<% $parameters.list[2] %>",
    "<% $parameters.list.x %>",
    "<% $parameters.text.x %>",
    "<% $parameters %>",
    "<% parameters.n %>",
    "<% $other.n %>",
    "<% $parameters.n",
    "<% $parameters.n > %>",
    "<% $script.uri %>",
    "<% $parameters.text[0] %>",
    "{{ $parameters.n }}",
    "$parameters.n",
]


@pytest.mark.parametrize(("text", "right"), RENDERED.items())
def test_a_reference_becomes_its_value(text: str, right: str) -> None:
    assert "".join(map(str, rendered(text, VALUES))) == right


@pytest.mark.parametrize("text", VERBATIM)
def test_what_leads_nowhere_stays_as_it_is(text: str) -> None:
    assert list(rendered(f"a {text} b", VALUES)) in ([f"a {text} b"], ["a ", text, " b"])


def test_a_secret_stays_a_reference() -> None:
    secret = Reference("secrets", ("a", "0", "b"), "<%$secrets.a[0].b%>")
    assert list(rendered("x<%$secrets.a[0].b%>", {"secrets": {"a": [{"b": 1}]}})) == ["x", secret]
    assert secret.key == "a.0.b"


def test_a_text_is_all_its_parts() -> None:
    text = "<% $data.a %><%$data.b%>x<% $secrets.c %>"
    whole = "".join(part if isinstance(part, str) else part.written for part in parts(text))
    assert whole == text
    assert list(parts("")) == []
    assert [str(part) for part in parts("<%$script.a%>x")][-1] == "x"
    assert [part.root for part in parts("<%$script.a%><%$output.a%>")] == ["script", "output"]
